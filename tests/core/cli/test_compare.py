"""`dryfit compare`."""

from __future__ import annotations

import itertools
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.schemas import validate

from dryfit.answers.comparison.answer import CompareAnswer

onnxruntime = pytest.importorskip(
    "onnxruntime", reason="ONNX Runtime is not installed; it has no wheel for this Python"
)

SCHEMA = CompareAnswer.schema()

SHAPE = ("--shape", "image=1x1x8x8")
DLA = ("--device", "DLA", "--precision", "int8,fp16", "--fallback", "GPU", *SHAPE)


@pytest.fixture
def images(tmp_path: Path) -> Path:
    path = tmp_path / "images.npy"
    np.save(path, np.random.default_rng(3).random((3, 1, 8, 8), np.float32))
    return path


@pytest.fixture
def ranges(tmp_path: Path) -> Path:
    """A range for every tensor of the digits network that the device computes in INT8."""
    names = ("image", "conv1_out", "norm1_out", "relu1_out", "conv2_out", "norm2_out", "elu2_out", "pool2_out")
    more = ("conv3_out", "norm3_out", "relu3_out", "average_out", "classifier/fully_connected_output")
    path = tmp_path / "digits.ranges"
    path.write_text("".join(f"{name}: {1.0 if name == 'image' else 6.0}\n" for name in (*names, *more)))
    return path


@pytest.fixture
def engine(dryfit_command: Any, digits_model: Path, ranges: Path, tmp_path: Path) -> Path:
    path = tmp_path / "digits.engine"
    assert dryfit_command("build", digits_model, "-o", path, *DLA, "--ranges", ranges, "--refit").code == 0
    return path


def test_a_models_comparison_keeps_its_schema_and_has_the_ratio_of_the_outputs(
    dryfit_command: Any, digits_model: Path, images: Path, ranges: Path, engine: Path, tmp_path: Path
) -> None:
    options = (*DLA, "--ranges", ranges, "--against", "fp32,GPU,dla@8.6", "--data", images, "--json")
    ended = dryfit_command("compare", digits_model, *options)
    assert ended.code == 0
    validate(ended.json, SCHEMA)
    assert ended.json["samples"] == ["images.npy[0]", "images.npy[1]", "images.npy[2]"]
    (output,) = (one for one in ended.json["tensors"] if one["is_output"])
    session = onnxruntime.InferenceSession(digits_model, providers=["CPUExecutionProvider"])
    exact = np.concatenate([session.run(None, {"image": one[None]})[0] for one in np.load(images)])
    run = dryfit_command("run", engine, "--input", images, "--batches", "--output-dir", tmp_path / "out")
    assert run.code == 0
    found = np.load(tmp_path / "out" / "probabilities.npy")
    ratio = 10 * math.log10(np.sum(exact.astype(float) ** 2) / np.sum((found - exact.astype(float)) ** 2))
    assert output["differences"]["fp32"]["sqnr_db"] == pytest.approx(ratio, abs=1e-3)


def test_an_engine_is_compared_as_the_model_that_it_was_built_from(
    dryfit_command: Any, digits_model: Path, images: Path, ranges: Path, engine: Path
) -> None:
    asked = ("--against", "fp32,gpu", "--data", images, "--limit", 2, "--json")
    of_engine = dryfit_command("compare", engine, *asked).json
    of_model = dryfit_command("compare", digits_model, *DLA, "--ranges", ranges, *asked).json
    assert of_engine.pop("model") != of_model.pop("model")
    assert json.dumps(of_engine) == json.dumps(of_model)


def test_the_tables_tell_the_layers_to_look_at(dryfit_command: Any, engine: Path, images: Path) -> None:
    ended = dryfit_command("compare", engine, "--against", "fp32,DLA@10.16", "--data", images)
    assert ended.code == 0
    fp32, same = ended.out.split("Against ")[1:]
    assert "First layer that adds an error: Reformatting CopyNode for Input Tensor 0 to conv1, to image" in fp32
    assert "Layers that add the most error" in fp32
    assert "0 of " in same
    assert "First layer that adds an error" not in same
    assert "inferred" in ended.out
    assert "Simulated: " in ended.out
    assert "first difference" not in ended.out
    assert "first difference" in dryfit_command("compare", engine, "--random", 1, "--verbose").out


def test_too_little_signal_to_noise_ends_with_1(dryfit_command: Any, engine: Path) -> None:
    asked = ("compare", engine, "--random", 1)
    assert dryfit_command(*asked, "--fail-below", 1).code == 0
    failed = dryfit_command(*asked, "--fail-below", 99)
    assert failed.code == 1
    assert "probabilities against fp32: at least 99 dB" in failed.out
    same = dryfit_command(*asked, "--fail-below", 99, "--against", "dla@10.16")
    assert same.code == 0


def wrapped_row(text: str, name: str) -> list[str]:
    """The cells of the row that begins with a name, each with the lines that go on with it below."""
    lines = text.splitlines()
    (start,) = (index for index, line in enumerate(lines) if line.strip().startswith(f"{name} "))
    rest = itertools.takewhile(lambda line: line.startswith("   "), lines[start + 1 :])
    cells: dict[int, str] = {}
    for line in [lines[start], *rest]:
        for cell in re.finditer(r"\S+(?: \S+)*", line):
            cells[cell.start()] = f"{cells.get(cell.start(), '')} {cell[0]}".strip()
    return list(cells.values())


@pytest.mark.parametrize("share", ["all", "one"])
def test_nan_that_one_side_only_has_is_counted_and_fails(
    dryfit_command: Any, engine: Path, tmp_path: Path, share: str
) -> None:
    image = np.random.default_rng(3).random((1, 1, 8, 8), np.float32)
    image[(...,) if share == "all" else (0, 0, 0, 0)] = np.nan
    np.save(tmp_path / "nan.npy", image)
    asked = ("compare", engine, "--input", tmp_path / "nan.npy", "--fail-below", 1)
    ended = dryfit_command(*asked, "--against", "fp32")
    assert ended.code == 1
    row = wrapped_row(ended.out, "image")
    assert ("64 non-finite values differ" if share == "all" else "47.9, 1 non-finite values differ") in row
    same = dryfit_command(*asked, "--against", "dla@10.16", "--json")
    assert same.code == 0
    validate(same.json, SCHEMA)


def test_nan_that_both_sides_have_is_said_to_be_alike(dryfit_command: Any, digits_model: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "nan.npy", np.full((1, 1, 8, 8), np.nan, np.float32))
    options = (*SHAPE, "--against", "cpu", "--input", tmp_path / "nan.npy", "--fail-below", 40)
    ended = dryfit_command("compare", digits_model, *options)
    assert ended.code == 0
    assert "10 non-finite values match" in wrapped_row(ended.out, "probabilities")


def test_each_side_tells_its_own_arithmetic(dryfit_command: Any, engine: Path) -> None:
    ended = dryfit_command("compare", engine, "--random", 1, "--against", "fp32,dla@8.6")
    assert "Arithmetic of fp32: the model, computed in the types of the model" in ended.out
    table = ended.out.split("Arithmetic of dla@8.6")[1].split("Against dla@8.6")[0]
    assert "half_away_from_zero" in table


def test_an_engine_without_its_network_is_compared_by_what_it_stores(
    dryfit_command: Any, digits_model: Path, ranges: Path, engine: Path, tmp_path: Path
) -> None:
    paths = {"plain": tmp_path / "plain.engine", "kept": engine}
    assert dryfit_command("build", digits_model, "-o", paths["plain"], *DLA, "--ranges", ranges).code == 0
    asked = ("--random", 1, "--against", "fp32,gpu,dla@8.6")
    found = {name: dryfit_command("compare", path, *asked, "--json").json for name, path in paths.items()}
    for one in found.values():
        validate(one, SCHEMA)
    assert found["kept"]["weights"] == "those of the model"
    assert found["plain"]["weights"].startswith("those that the engine stores")
    assert found["plain"]["weights_unknown"] == []
    tensors = {name: {one["stored_as"]: one for one in report["tensors"]} for name, report in found.items()}
    assert tensors["plain"].keys() == tensors["kept"].keys()
    for name, one in tensors["plain"].items():
        other = tensors["kept"][name]["differences"]
        assert {side for side, value in one["differences"].items() if value is None} == {
            side for side, value in other.items() if value is None
        }
    # Against its own weights in real numbers it has no error of rounding them, which the model's show.
    first = "relu1_out"
    errors = {name: one[first]["differences"]["fp32"]["own_error"] for name, one in tensors.items()}
    assert 0 < errors["plain"] < errors["kept"]
    text = dryfit_command("compare", paths["plain"], *asked).out
    assert "Weights of the other sides: those that the engine stores" in text
    assert "Arithmetic of fp32: what the engine stores, computed in the types of the model" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "Pass one of --data, --input and --random"),
        (("--random", 1, "--data", "x.npy"), "Pass one of --data, --input and --random"),
        (("--random", 1, "--against", "gpu,GPU"), "is not a list such as gpu,fp32"),
        (("--random", 1, "--against", ","), "is not a list such as gpu,fp32"),
        (("--random", 1, "--against", "gpux"), "gpux"),
        (("--random", 1, "--device", "DLA"), "Build options cannot be changed for a built engine"),
        (("--random", 1, "--against", "dla@1.0"), "1.0"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    dryfit_command: Any, engine: Path, options: tuple[object, ...], message: str
) -> None:
    ended = dryfit_command("compare", engine, *options)
    assert ended.code == 2
    assert message in ended.err


def test_inspect_and_explain_tell_the_arithmetic_with_its_fidelity(
    dryfit_command: Any, digits_model: Path, engine: Path
) -> None:
    (int8,) = (one for one in dryfit_command("inspect", engine, "--json").json["arithmetic"] if one["device"] == "DLA")
    assert (int8["rounding"], int8["accumulator"], int8["fidelity"]) == ("half_to_even", "INT32", "documented")
    explained = dryfit_command(
        "explain",
        digits_model,
        "--device",
        "DLA",
        "--software",
        "8.6",
        *SHAPE,
        "--assume-scales",
        "--precision",
        "int8",
        "--fallback",
        "GPU",
        "--json",
    ).json
    (int8,) = (one for one in explained["arithmetic"] if one["device"] == "DLA" and one["precision"] == "INT8")
    assert (int8["rounding"], int8["weight_rounding"]) == ("half_away_from_zero", "half_away_from_zero")
    for command in (("inspect", engine), ("explain", digits_model, "--device", "DLA", "--fallback", "GPU", *SHAPE)):
        assert "fidelity" in dryfit_command(*command).out
