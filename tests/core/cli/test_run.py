"""`dryfit run` of models, loadables and pictures: the numbers of the engine, and the five most likely classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dryfit.answers.run import profile_table
from dryfit.answers.top_classes import top_classes

PIL = pytest.importorskip("PIL.Image")
SHAPE = ("--shape", "image=1x1x8x8")
DLA = ("--device", "DLA", "--precision", "fp16", "--fallback", "GPU")


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = tmp_path / "pictures"
    folder.mkdir()
    rng = np.random.default_rng(1)
    for name in ("a.png", "b.png", "c.png"):
        PIL.fromarray(rng.integers(0, 256, (8, 8), np.uint8)).save(folder / name)
    return folder


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    path = tmp_path / "labels.txt"
    path.write_text("".join(f"digit {number}\n" for number in range(10)), encoding="utf-8")
    return path


def outputs(folder: Path) -> list[np.ndarray[Any, Any]]:
    return [np.load(path) for path in sorted(folder.glob("*.npy"))]


def test_a_model_is_built_for_the_run_and_gives_what_its_engine_gives(
    dryfit_command: Any, digits_model: Path, tmp_path: Path
) -> None:
    engine = tmp_path / "digits.engine"
    assert dryfit_command("build", digits_model, "-o", engine, *DLA, *SHAPE).code == 0
    for what, options in ((engine, ()), (digits_model, (*DLA, *SHAPE))):
        ended = dryfit_command("run", what, *options, "--random", 1, "--output-dir", tmp_path / what.stem / what.suffix)
        assert ended.code == 0
    first, second = (outputs(tmp_path / what.stem / what.suffix) for what in (engine, digits_model))
    assert first
    assert all(np.array_equal(one, other) for one, other in zip(first, second, strict=True))
    assert "Defaults: --device GPU" in dryfit_command("run", digits_model, *SHAPE, "--random", 1).out


def test_a_model_without_a_shape_is_told_the_option(dryfit_command: Any, digits_model: Path) -> None:
    ended = dryfit_command("run", digits_model, "--random", 1)
    assert (ended.code, "--shape image=1x1x8x8" in ended.err) == (2, True)


def test_what_is_built_takes_no_options_of_builds(dryfit_command: Any, digits_model: Path, tmp_path: Path) -> None:
    engine = tmp_path / "digits.engine"
    dryfit_command("build", digits_model, "-o", engine, *SHAPE)
    ended = dryfit_command("run", engine, "--random", 1, "--fp16")
    assert (ended.code, "built engine" in ended.err) == (2, True)
    assert dryfit_command("run", f"--loadEngine={engine}", "--random", 1).code == 0
    assert dryfit_command("run", engine, f"--loadEngine={engine}", "--random", 1).code == 2
    assert dryfit_command("run", "--random", 1).code == 2


def test_a_loadable_runs_as_the_engine_of_its_segment(dryfit_command: Any, digits_model: Path, tmp_path: Path) -> None:
    from dryfit_dla.loadable_file import read_loadable

    assert dryfit_command("export", "loadables", digits_model, "-o", tmp_path / "own", *DLA, *SHAPE).code == 0
    loadable = min((tmp_path / "own").iterdir())
    context = read_loadable(loadable).create_engine().create_execution_context(1)
    picture = np.random.default_rng(1).random((1, 1, 8, 8), np.float32).astype(np.float16)
    name = context.engine.plan.network.inputs[0].name
    np.savez(tmp_path / "x.npz", **{name: picture})
    answer = dryfit_command(
        "run", loadable, "--input", tmp_path / "x.npz", "--output-dir", tmp_path / "out", "--json"
    ).json
    (wanted,) = context.run({name: picture}).values()
    assert np.array_equal(np.load(answer["outputs"][0]["file"]), wanted)
    damaged = tmp_path / "damaged.loadable"
    damaged.write_bytes(loadable.read_bytes()[:-5] + b"other")
    ended = dryfit_command("run", damaged, "--random", 1)
    assert (ended.code, "Traceback" in ended.err) == (2, False)


def test_pictures_have_their_five_classes_with_labels(
    dryfit_command: Any, digits_model: Path, pictures: Path, labels: Path, tmp_path: Path
) -> None:
    asked = ("run", digits_model, *SHAPE, "--scale", 1 / 255, "--labels", labels)
    ended = dryfit_command(*asked, "--data", pictures, "--output-dir", tmp_path / "out", "--json")
    scores = np.load(ended.json["outputs"][0]["file"])
    assert [one["sample"] for one in ended.json["top_classes"]] == ["a.png", "b.png", "c.png"]
    for row, one in zip(scores, ended.json["top_classes"], strict=True):
        assert [found["class"] for found in one["classes"]] == list(np.argsort(-row, kind="stable")[:5])
        assert all(found["label"] == f"digit {found['class']}" for found in one["classes"])
        assert [found["score"] for found in one["classes"]] == pytest.approx(sorted(row, reverse=True)[:5])
    single = dryfit_command(*asked, "--input", f"image={pictures / 'b.png'}", "--json").json["top_classes"]
    assert single == [ended.json["top_classes"][1]]
    text = dryfit_command(*asked, "--data", pictures, "--limit", 1).out
    best = ended.json["top_classes"][0]["classes"][0]
    assert f"a.png   {best['class']}      digit {best['class']}" in text
    assert "b.png" not in text
    assert dryfit_command("run", digits_model, *SHAPE, "--random", 1, "--json").json["top_classes"] == []


def test_labels_of_another_number_of_classes_are_refused(dryfit_command: Any, digits_model: Path, labels: Path) -> None:
    labels.write_text(f"background\n{labels.read_text(encoding='utf-8')}", encoding="utf-8")
    ended = dryfit_command("run", digits_model, *SHAPE, "--random", 1, "--labels", labels)
    assert ended.code == 2
    assert "found 11 labels" in ended.err
    assert "background" in ended.err


def test_classes_of_a_batch_and_of_planes_of_one_pixel_are_found() -> None:
    scores = np.arange(12.0, dtype=np.float32).reshape(2, 6, 1, 1)
    found = top_classes({"boxes": np.zeros((2, 3, 4)), "scores": scores}, ["x"], None)
    assert [one.sample for one in found] == ["x[0]", "x[1]"]
    assert [one.index for one in found[0].classes] == [5, 4, 3, 2, 1]


def test_a_profile_begins_with_the_slowest_layer_and_has_shares() -> None:
    table = profile_table({"quick": 1.0, "slow": 3.0}, {"quick": 1.5, "slow": 4.0})
    rows = [" ".join(row).split() for row in table.cells()]
    assert rows == [["slow", "3.0000", "4.0000", "75.0", "%"], ["quick", "1.0000", "1.5000", "25.0", "%"]]
