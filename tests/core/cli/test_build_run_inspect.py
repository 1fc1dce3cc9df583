from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnxruntime = pytest.importorskip(
    "onnxruntime", reason="ONNX Runtime is not installed; it has no wheel for this Python"
)

BATCH = 4


@pytest.fixture(scope="module")
def engine_file(digits_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An FP32 engine of the digits network for the host and batch 4."""
    from dryfit.cli.main import main

    path = tmp_path_factory.mktemp("engines") / "digits.engine"
    with pytest.raises(SystemExit) as end:
        main(["build", str(digits_model), "--output", str(path), "--shape", f"image={BATCH}x1x8x8"])
    assert not end.value.code
    return path


@pytest.fixture
def images() -> np.ndarray:
    return np.random.default_rng(3).random((2 * BATCH, 1, 8, 8), np.float32)


def expected(model: Path, images: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(None, {"image": images})[0]


def test_a_build_for_a_device_writes_an_engine_and_says_where_layers_went(
    dryfit_command: Any, digits_model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "dla.engine"
    options = ("--device", "DLA", "--precision", "fp16", "--fallback", "GPU", "--shape", "image=1x1x8x8")
    ended = dryfit_command("build", digits_model, "--output", path, *options, "--json")
    assert ended.code == 0
    assert ended.json["engine_bytes"] == path.stat().st_size
    assert ended.json["summary"]["layers_by_device"].keys() == {"DLA", "GPU"}
    assert "'elu2' cannot run on DLA" in ended.err
    text = dryfit_command("build", digits_model, "--output", path, *options)
    assert f"{path}: {ended.json['engine_layers']} engine layers" in text.out
    assert "Simulated: " in text.err


def test_a_build_says_the_same_placement_as_a_check(dryfit_command: Any, digits_model: Path, tmp_path: Path) -> None:
    options = ("--device", "DLA", "--precision", "fp16", "--fallback", "GPU", "--shape", "image=2x1x8x8", "--json")
    checked = dryfit_command("check", digits_model, *options).json
    built = dryfit_command("build", digits_model, "--output", tmp_path / "x.engine", *options).json
    for key in ("device", "platform", "software", "precisions", "fallback", "reformats"):
        assert built[key] == checked[key]
    placed = [(layer["name"], layer["device"], layer["segment"]) for layer in checked["layers"]]
    assert [(layer["name"], layer["device"], layer["segment"]) for layer in built["layers"]] == placed


def test_a_build_that_is_refused_leaves_no_file(dryfit_command: Any, digits_model: Path, tmp_path: Path) -> None:
    ended = dryfit_command(
        "build", digits_model, "-o", tmp_path / "x.engine", "--device", "DLA", "--precision", "fp16",
        "--shape", "image=1x1x8x8", "--fallback", "none",
    )  # fmt: skip
    assert ended.code == 2
    for name in ("elu2", "average", "softmax"):
        assert f"'{name}' cannot run on DLA" in ended.err
    assert not list(tmp_path.iterdir())


def test_a_run_gives_the_outputs_of_onnx_runtime(
    dryfit_command: Any, digits_model: Path, engine_file: Path, images: np.ndarray, tmp_path: Path
) -> None:
    np.save(tmp_path / "images.npy", images[:BATCH])
    ended = dryfit_command(
        "run", engine_file, "--input", f"image={tmp_path / 'images.npy'}", "--output-dir", tmp_path / "out", "--json"
    )
    assert ended.code == 0
    (output,) = ended.json["outputs"]
    assert output["shape"] == [BATCH, 10]
    np.testing.assert_allclose(np.load(output["file"]), expected(digits_model, images[:BATCH]), atol=1e-5)


def test_inputs_are_cut_into_runs_of_the_batch_size(
    dryfit_command: Any, digits_model: Path, engine_file: Path, images: np.ndarray, tmp_path: Path
) -> None:
    np.savez(tmp_path / "images.npz", image=images)
    ended = dryfit_command(
        "run", engine_file, "--input", tmp_path / "images.npz", "--batches", "--repeat", 2,
        "--output-dir", tmp_path, "--json",
    )  # fmt: skip
    assert ended.json["runs"] == 4
    found = np.load(ended.json["outputs"][0]["file"])
    np.testing.assert_allclose(found, expected(digits_model, images), atol=1e-5)


def test_inputs_that_cannot_be_cut_are_refused(
    dryfit_command: Any, engine_file: Path, images: np.ndarray, tmp_path: Path
) -> None:
    np.save(tmp_path / "images.npy", images[:7])
    ended = dryfit_command("run", engine_file, "--input", tmp_path / "images.npy", "--batches")
    assert ended.code == 2
    assert "'image': a multiple of 4" in ended.err


def test_random_inputs_are_the_same_for_the_same_seed(dryfit_command: Any, engine_file: Path, tmp_path: Path) -> None:
    outputs = []
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        dryfit_command("run", engine_file, "--random", seed, "--threads", 1, "--output-dir", tmp_path / folder)
        outputs.append(np.load(tmp_path / folder / "probabilities.npy"))
    np.testing.assert_array_equal(outputs[0], outputs[1])
    assert (outputs[0] != outputs[2]).any()


def test_a_profile_has_the_hosts_time_of_every_engine_layer(dryfit_command: Any, engine_file: Path) -> None:
    answer = dryfit_command("run", engine_file, "--random", 1, "--profile", "--json").json
    assert any("conv1" in name for name in answer["host_milliseconds_by_layer"])
    text = dryfit_command("run", engine_file, "--random", 1, "--profile").out
    assert "not the device's" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "Pass one of --input, --data and --random"),
        (("--random", "1", "--input", "image=x.npy"), "Pass one of --input, --data and --random"),
        (("--input", "image=missing.npy"), "The input cannot be read"),
        (("--input", "image.txt"), "Inputs must be .npy or .npz files, or pictures"),
        (("--random", "1", "--threads", "0"), "'--threads'"),
    ],
)
def test_a_run_that_was_not_asked_for_rightly_is_refused(
    dryfit_command: Any, engine_file: Path, options: tuple[str, ...], message: str
) -> None:
    ended = dryfit_command("run", engine_file, *options)
    assert ended.code == 2
    assert message in ended.err


def test_an_input_file_never_runs_code(dryfit_command: Any, engine_file: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    ended = dryfit_command("run", engine_file, "--input", f"image={tmp_path / 'objects.npy'}")
    assert ended.code == 2
    assert "The input cannot be read" in ended.err


def test_an_input_of_another_name_or_type_is_refused(dryfit_command: Any, engine_file: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((BATCH, 1, 8, 8)))
    wrong_type = dryfit_command("run", engine_file, "--input", tmp_path / "x.npy")
    assert (wrong_type.code, "float32" in wrong_type.err) == (2, True)
    wrong_name = dryfit_command("run", engine_file, "--input", f"picture={tmp_path / 'x.npy'}")
    assert (wrong_name.code, "unknown 'picture'" in wrong_name.err) == (2, True)


def test_a_model_is_not_taken_for_an_engine(dryfit_command: Any, digits_model: Path) -> None:
    damaged = dryfit_command("inspect", digits_model)
    assert damaged.code == 2
    assert "Traceback" not in damaged.err


def test_an_engine_can_be_inspected(dryfit_command: Any, engine_file: Path) -> None:
    answer = dryfit_command("inspect", engine_file, "--json").json
    assert answer["Bindings"] == ["image", "probabilities"]
    assert any("conv1" in layer["Name"] for layer in answer["Layers"])
    text = dryfit_command("inspect", engine_file, "--verbose").out
    assert "probabilities  output" in text
    assert "Engine layers" in text
    assert "host kernel" in text


def test_an_engine_can_be_inspected_where_its_device_is_not_installed(
    dryfit_command: Any, engine_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dryfit.plugins.registry.find_target", lambda device: None)
    answer = dryfit_command("inspect", engine_file, "--json").json
    assert (answer["device"], answer["simulated"]) == ("GPU", "")


def test_an_engine_is_not_written_where_there_is_no_folder(
    dryfit_command: Any, digits_model: Path, tmp_path: Path
) -> None:
    ended = dryfit_command("build", digits_model, "-o", tmp_path / "no" / "x.engine", "--shape", "image=1x1x8x8")
    assert ended.code == 2
    assert "x.engine" in ended.err


def test_a_profile_of_shapes_is_shown(dryfit_command: Any, digits_model: Path, tmp_path: Path) -> None:
    path = tmp_path / "dynamic.engine"
    dryfit_command("build", digits_model, "-o", path, "--shape", "image=1x1x8x8:2x1x8x8:4x1x8x8")
    text = dryfit_command("inspect", path).out
    assert "1x1x8x8  2x1x8x8  4x1x8x8" in text
    answer = dryfit_command("run", path, "--random", 1, "--json").json
    assert answer["outputs"][0]["shape"] == [2, 10]
