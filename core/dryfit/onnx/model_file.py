"""Reading an ONNX model: from a path, from bytes, or as a message that somebody has read already."""

from __future__ import annotations

import os
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from dryfit.errors import OnnxImportError
from dryfit.onnx.external_data import ExternalData
from dryfit.onnx.texts import check_texts

ModelSource = str | os.PathLike[str] | bytes | onnx.ModelProto

LARGEST_FILE_BYTES = 2**31 - 1
"""A protobuf message cannot be larger. Source: protobuf, encoding; larger models keep their weights outside."""


def read_model(source: ModelSource, folder: Path | None = None) -> tuple[onnx.ModelProto, ExternalData]:
    """The model, and where its external data may lie.

    Args:
        source: a path, the bytes of a file, or a message.
        folder: where external data lie, for bytes and messages; a path brings its own.

    Raises:
        OnnxImportError: there is no such file, or it is not a whole ONNX model.
    """
    if isinstance(source, onnx.ModelProto):
        model, where = source, "model"
    elif isinstance(source, bytes):
        model, where = _parsed(source, "model"), "model"
    else:
        path = Path(source)
        folder, where = path.parent, f"file {str(path)!r}"
        model = _parsed(_read(path, where), where)
    if not model.HasField("graph") or model.ir_version <= 0 or not (model.opset_import or model.ir_version < 3):
        raise OnnxImportError(
            "This is not an ONNX model",
            where=where,
            found="no graph" if not model.HasField("graph") else "no IR version or no operator set",
        )
    check_texts(model, where)
    return model, ExternalData(folder)


def _read(path: Path, where: str) -> bytes:
    try:
        size = path.stat().st_size
        if size > LARGEST_FILE_BYTES:
            raise OnnxImportError(
                "The file is too large to be an ONNX model",
                where=where,
                found=f"{size} bytes",
                allowed=f"at most {LARGEST_FILE_BYTES} bytes",
                source="protobuf messages are smaller than 2 GiB",
                remedy="Save the weights as external data",
            )
        return path.read_bytes()
    except OSError as error:
        raise OnnxImportError("The file cannot be read", where=where, found=error.strerror or str(error)) from error


def _parsed(data: bytes, where: str) -> onnx.ModelProto:
    try:
        model: onnx.ModelProto = onnx.ModelProto.FromString(data)
    except DecodeError as error:
        raise OnnxImportError(
            "This is not an ONNX model, or it is cut off or damaged",
            where=where,
            found=f"{len(data)} bytes that are no protobuf message",
        ) from error
    return model
