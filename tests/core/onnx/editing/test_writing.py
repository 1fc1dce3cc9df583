"""Edited models are written whole, with their weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.core.onnx.models import model

from dryfit.errors import OnnxImportError
from dryfit.onnx.editing import writing
from dryfit.onnx.editing.writing import write_model
from dryfit.onnx.importer import network_from_onnx
from dryfit.onnx.model_file import read_model

WEIGHTS = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def with_external_data(tmp_path: Path) -> Path:
    parsed = model("y = Add(x, w)", inputs="float[3,4] x", outputs="float[3,4] y", weights={"w": WEIGHTS})
    tensor = parsed.graph.initializer[0]
    onnx.external_data_helper.set_external_data(tensor, "w.bin")
    tensor.ClearField("raw_data")
    (tmp_path / "w.bin").write_bytes(WEIGHTS.tobytes())
    path = tmp_path / "model.onnx"
    path.write_bytes(parsed.SerializeToString())
    return path


def weights_of(path: Path) -> np.ndarray:
    (constant,) = [layer for layer in network_from_onnx(path) if layer.kind == "constant"]
    return np.asarray(constant.weights)


def test_external_data_stay_outside_in_the_same_folder(with_external_data: Path) -> None:
    folder, new = with_external_data.parent, with_external_data.with_name("new.onnx")
    source, external = read_model(with_external_data)
    write_model(source, new, external, folder)
    assert onnx.load(new, load_external_data=False).graph.initializer[0].data_location == onnx.TensorProto.EXTERNAL
    np.testing.assert_array_equal(weights_of(new), WEIGHTS)


def test_external_data_go_into_a_file_of_another_folder(with_external_data: Path) -> None:
    (with_external_data.parent / "other").mkdir()
    new = with_external_data.parent / "other" / "new.onnx"
    source, external = read_model(with_external_data)
    write_model(source, new, external, with_external_data.parent)
    np.testing.assert_array_equal(weights_of(new), WEIGHTS)


def test_a_model_that_is_too_large_for_a_file_is_refused_before_it_is_read(
    with_external_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "LARGEST_FILE_BYTES", 100)
    (with_external_data.parent / "other").mkdir()
    new = with_external_data.parent / "other" / "new.onnx"
    source, external = read_model(with_external_data)
    with pytest.raises(OnnxImportError, match="at most 100 bytes"):
        write_model(source, new, external, with_external_data.parent)
    assert not new.exists()


def test_a_folder_that_does_not_exist_is_named(with_external_data: Path) -> None:
    source, external = read_model(with_external_data)
    with pytest.raises(OnnxImportError, match=r"nowhere/new\.onnx.*cannot be written"):
        write_model(source, with_external_data.parent / "nowhere" / "new.onnx", external, with_external_data.parent)
