"""Weights outside the model file: mapped, and nowhere but in the model's folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.core.onnx.models import model

from dryfit.errors import OnnxImportError
from dryfit.onnx.importer import network_from_onnx

WEIGHTS = np.arange(12, dtype=np.float32).reshape(3, 4)


def saved(folder: Path, location: str, offset: int | None = None, length: int | None = None) -> Path:
    parsed = model("y = Add(x, w)", inputs="float[3,4] x", outputs="float[3,4] y", weights={"w": WEIGHTS})
    tensor = parsed.graph.initializer[0]
    onnx.external_data_helper.set_external_data(tensor, location, offset, length)
    tensor.ClearField("raw_data")
    path = folder / "model.onnx"
    path.write_bytes(parsed.SerializeToString())
    return path


def weights_of(path: Path) -> np.ndarray:
    constants = [layer for layer in network_from_onnx(path) if layer.kind == "constant"]
    return constants[0].weights


def test_external_weights_are_a_view_of_the_mapped_file(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "weights.bin").write_bytes(b"\0" * 6 + WEIGHTS.tobytes())
    weights = weights_of(saved(tmp_path, "data/weights.bin", 6, 48))
    np.testing.assert_array_equal(weights, WEIGHTS)
    base = weights
    while base.base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)
    assert not weights.flags.writeable


def test_offset_and_length_may_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(WEIGHTS.tobytes())
    np.testing.assert_array_equal(weights_of(saved(tmp_path, "w")), WEIGHTS)


@pytest.mark.parametrize(
    "location", ["../secret", "data/../../secret", "", "{absolute}", "link/secret", "link_to_file"]
)
def test_a_location_that_leaves_the_folder_is_refused(tmp_path: Path, location: str) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "model"
    outside.mkdir()
    (folder / "data").mkdir(parents=True)
    for place in (tmp_path / "secret", outside / "secret"):
        place.write_bytes(WEIGHTS.tobytes())
    (folder / "link").symlink_to(outside)
    (folder / "link_to_file").symlink_to(outside / "secret")
    path = saved(folder, location.format(absolute=outside / "secret"))
    with pytest.raises(OnnxImportError, match="must be in the folder of the model") as caught:
        network_from_onnx(path)
    assert "tensor 'w'" in str(caught.value)


@pytest.mark.parametrize(("offset", "length"), [(0, 49), (1, 48), (48, 48), (-8, 48), (0, -1), (2**62, 48)])
def test_a_range_outside_the_file_is_refused(tmp_path: Path, offset: int, length: int) -> None:
    (tmp_path / "w").write_bytes(WEIGHTS.tobytes())
    with pytest.raises(OnnxImportError, match="must lie inside their file") as caught:
        network_from_onnx(saved(tmp_path, "w", offset, length))
    assert "48 bytes" in str(caught.value)


def test_a_length_that_is_not_the_tensors_is_refused(tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(WEIGHTS.tobytes())
    with pytest.raises(OnnxImportError, match="number of bytes does not match") as caught:
        network_from_onnx(saved(tmp_path, "w", 0, 44))
    assert "44 bytes" in str(caught.value)
    assert "48 bytes for FP32 (3, 4)" in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(OnnxImportError, match="missing") as caught:
        network_from_onnx(saved(tmp_path, "nowhere.bin"))
    assert str(tmp_path / "nowhere.bin") in str(caught.value)


@pytest.mark.parametrize("location", ["w\0", "\0", "x" * 5000, "ring/w"])
def test_a_location_that_no_file_can_have_is_refused(tmp_path: Path, location: str) -> None:
    (tmp_path / "w").write_bytes(WEIGHTS.tobytes())
    (tmp_path / "ring").symlink_to(tmp_path / "ring")
    with pytest.raises(OnnxImportError, match=r"external data file (cannot be read|is missing)") as caught:
        network_from_onnx(saved(tmp_path, location))
    assert "tensor 'w'" in str(caught.value)


def test_a_message_without_a_folder_cannot_have_external_data(tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(WEIGHTS.tobytes())
    parsed = onnx.load(saved(tmp_path, "w"), load_external_data=False)
    with pytest.raises(OnnxImportError, match="whose folder is unknown"):
        network_from_onnx(parsed)
    assert len(network_from_onnx(parsed, folder=tmp_path)) == 2
