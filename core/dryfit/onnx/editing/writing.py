"""Writing an edited model."""

from __future__ import annotations

from pathlib import Path

from onnx import ModelProto, TensorProto, numpy_helper

from dryfit.atomic_file import write_atomically
from dryfit.errors import OnnxImportError
from dryfit.onnx.external_data import ExternalData
from dryfit.onnx.model_file import LARGEST_FILE_BYTES
from dryfit.onnx.tensors import array_of


def write_model(model: ModelProto, path: Path, external: ExternalData, folder: Path) -> None:
    """Write a model, whole or not at all.

    External data stay where they are where the new file lies in the same folder; else they are put into the file.

    Args:
        model: may get its external data put into it.
        path: the new file.
        external: finds the external data.
        folder: that of the model that was edited.

    Raises:
        OnnxImportError: the file would be too large, or cannot be written.
    """
    if path.resolve().parent != folder.resolve():
        outside = [tensor for tensor in model.graph.initializer if tensor.data_location == TensorProto.EXTERNAL]
        arrays = [array_of(tensor, external) for tensor in outside]
        _check_size(path, model.ByteSize() + sum(array.nbytes for array in arrays))
        for tensor, array in zip(outside, arrays, strict=True):
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    _check_size(path, model.ByteSize())
    try:
        write_atomically(path, [model.SerializeToString()])
    except OSError as error:
        raise OnnxImportError(
            "The model cannot be written", where=f"file {str(path)!r}", found=error.strerror or str(error)
        ) from error


def _check_size(path: Path, size: int) -> None:
    if size > LARGEST_FILE_BYTES:
        raise OnnxImportError(
            "The model is too large for one file",
            where=f"file {str(path)!r}",
            found=f"{size} bytes",
            allowed=f"at most {LARGEST_FILE_BYTES} bytes",
            remedy="Write it into the folder of the old model, whose external data it can use",
        )
