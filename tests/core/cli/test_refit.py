"""`dryfit build --refit` and `--stripped`, `dryfit refit`, and what `dryfit inspect` says of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from tests.core.cli.test_answer_schemas import check

from dryfit.answers.inspect_engine import InspectAnswer
from dryfit.answers.refit import RefitAnswer

SHAPE = ("--shape", "image=1x1x8x8")


@pytest.fixture(scope="module")
def other_model(digits_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The digits network with other weights."""
    model = onnx.load(digits_model)
    for tensor in model.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor)
        if array.dtype == np.float32 and array.ndim > 1:
            tensor.CopyFrom(onnx.numpy_helper.from_array(array * np.float32(0.5), tensor.name))
    path = tmp_path_factory.mktemp("models") / "other.onnx"
    onnx.save(model, path)
    return path


def test_an_engine_gets_the_weights_of_a_model(
    dryfit_command: Any, digits_model: Path, other_model: Path, tmp_path: Path
) -> None:
    old, new, fresh = (tmp_path / f"{name}.engine" for name in ("old", "new", "fresh"))
    assert dryfit_command("build", digits_model, "-o", old, "--refit", *SHAPE).code == 0
    assert dryfit_command("build", other_model, "-o", fresh, "--refit", *SHAPE).code == 0
    assert "Refittable: takes new weights, " in dryfit_command("inspect", old).out
    ended = dryfit_command("refit", old, "--onnx", other_model, "-o", new)
    assert ended.code == 0, ended.err
    assert f"{new}: " in ended.out
    assert new.read_bytes() == fresh.read_bytes()
    listed = dryfit_command("refit", old, "--list")
    assert "conv1" in listed.out
    assert "KERNEL" in listed.out


def test_a_stripped_engine_is_small_says_so_and_comes_back(
    dryfit_command: Any, digits_model: Path, tmp_path: Path
) -> None:
    plain, stripped, back = (tmp_path / f"{name}.engine" for name in ("plain", "stripped", "back"))
    dryfit_command("build", digits_model, "-o", plain, *SHAPE)
    ended = dryfit_command("build", digits_model, "-o", stripped, "--stripped", *SHAPE)
    assert "without weights: run `dryfit refit` before `dryfit run`" in ended.out
    assert stripped.stat().st_size < plain.stat().st_size
    inspected = dryfit_command("inspect", stripped)
    assert "takes the weights that it was built with" in inspected.out
    assert "has none before a refit" in inspected.out
    ended = dryfit_command("run", stripped, "--random", 1)
    assert ended.code == 2
    assert "dryfit refit ENGINE --onnx MODEL -o OUT" in ended.err
    assert dryfit_command("refit", stripped, "--onnx", digits_model, "-o", back).code == 0
    runs = [
        dryfit_command("run", path, "--random", 1, "--output-dir", tmp_path / path.stem, "--json").json
        for path in (plain, back)
    ]
    first, second = (np.load(one["outputs"][0]["file"]) for one in runs)
    assert first.tobytes() == second.tobytes()


def test_answers_are_as_their_schemas_promise(dryfit_command: Any, digits_model: Path, tmp_path: Path) -> None:
    engine = tmp_path / "a.engine"
    dryfit_command("build", digits_model, "-o", engine, "--stripped", *SHAPE)
    inspected = dryfit_command("inspect", engine, "--json").json
    check(inspected, InspectAnswer.schema())
    assert (inspected["refittable"], inspected["stripped"]) == (True, True)
    listed = dryfit_command("refit", engine, "--list", "--json").json
    check(listed, RefitAnswer.schema())
    assert listed["stripped"] is True
    refitted = dryfit_command("refit", engine, "--onnx", digits_model, "-o", engine, "--json").json
    check(refitted, RefitAnswer.schema())
    assert refitted["stripped"] is False
    assert refitted["engine_bytes"] == engine.stat().st_size


@pytest.mark.parametrize("arguments", [(), ("--list", "--onnx", "{model}"), ("--onnx", "{model}"), ("-o", "x.engine")])
def test_options_that_make_no_sense_are_refused(
    dryfit_command: Any, digits_model: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    engine = tmp_path / "a.engine"
    engine.touch()
    ended = dryfit_command("refit", engine, *(one.format(model=digits_model) for one in arguments))
    assert ended.code == 2
    assert "either --list, or --onnx MODEL and --output FILE" in ended.err


def test_another_model_and_an_engine_without_refit_are_refused_and_leave_no_file(
    dryfit_command: Any, digits_model: Path, tmp_path: Path
) -> None:
    plain, refittable, new = (tmp_path / f"{name}.engine" for name in ("plain", "refittable", "new"))
    dryfit_command("build", digits_model, "-o", plain, *SHAPE)
    ended = dryfit_command("refit", plain, "--onnx", digits_model, "-o", new)
    assert (ended.code, "without the flag REFIT" in ended.err) == (2, True)
    dryfit_command("build", digits_model, "-o", refittable, "--refit", *SHAPE)
    model = onnx.load(digits_model)
    model.graph.node[0].name = "renamed"
    onnx.save(model, tmp_path / "renamed.onnx")
    ended = dryfit_command("refit", refittable, "--onnx", tmp_path / "renamed.onnx", "-o", new)
    assert ended.code == 2
    assert "renamed" in ended.err
    assert "no layer with this name" in ended.err
    assert not new.exists()
