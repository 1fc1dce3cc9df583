"""ONNX models in and out: read from a path, from bytes, or as a message that somebody has read already; and written.

Each text of a model is UTF-8, which protobuf does not check when it reads a message of this syntax.
"""

from __future__ import annotations

import functools
import math
import os
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, numpy_helper

from dryfit.atomic_file import write_atomically
from dryfit.attrs_classes import frozen
from dryfit.errors import OnnxImportError
from dryfit.onnx.external_data import ExternalData
from dryfit.onnx.tensors import array_of


def check_texts(model: onnx.ModelProto, where: str) -> None:
    """Check every text field of a model: names, operators, domains, locations of external data.

    Raises:
        OnnxImportError: one is not UTF-8.
    """
    try:
        is_right = _has_right_texts(model)
    except UnicodeDecodeError:
        is_right = False
    if not is_right:
        _find_wrong_text(model, where)


def _has_right_texts(model: onnx.ModelProto) -> bool:
    """Whether every text of a model is UTF-8, looking at the fields only that its messages have.

    Raises:
        UnicodeDecodeError: a text is not.
    """
    waiting: list[Any] = [model]
    while waiting:
        message = waiting.pop()
        if _is_small(message) and message.SerializeToString().isascii():
            continue  # names, shapes and numbers are all that most have, in many small messages
        if isinstance(message, TensorProto):  # its contents would be copied
            if bytes in map(type, (message.name, message.doc_string)):
                return False
            waiting += [*message.external_data, *message.metadata_props]
            continue
        for field, value in message.ListFields():
            kind = _kind(field)
            if kind == (False, False):
                waiting.append(value)
            elif kind == (True, False):
                waiting += value
            elif kind is not None and bytes in map(type, value if kind[0] else (value,)):
                return False
    return True


def _is_small(message: Any) -> bool:
    """Whether a message is one of the many that a model is made of, and holds no contents of tensors or bodies."""
    return isinstance(message, ValueInfoProto) or (isinstance(message, NodeProto) and not message.attribute)


def _find_wrong_text(model: onnx.ModelProto, where: str) -> None:
    """Refuse a text that is not UTF-8, with its place in the model.

    Raises:
        OnnxImportError: there is one.
    """
    waiting: list[tuple[Any, str]] = [(model, "")]
    while waiting:
        message, path = waiting.pop()
        for name, is_list, is_text in _fields(message.DESCRIPTOR):
            if not is_list and not is_text and not message.HasField(name):
                continue
            here = f"{path}.{name}" if path else name
            try:
                found = getattr(message, name)
                values = list(found) if is_list else [found]
            except UnicodeDecodeError as error:
                raise _problem(where, here, error.object) from error
            for index, value in enumerate(values):
                place = f"{here}[{index}]" if is_list else here
                if not is_text:
                    waiting.append((value, place))
                elif isinstance(value, bytes):
                    raise _problem(where, place, value)


def _problem(where: str, place: str, found: bytes) -> OnnxImportError:
    return OnnxImportError(
        "A string in the model is not valid UTF-8",
        where=where,
        found=f"{place} is {found[:64]!r}",
        remedy="The file is damaged; export the model again",
    )


@functools.cache
def _fields(descriptor: Any) -> list[tuple[str, bool, bool]]:
    """(name, whether it is a list, whether it is a text) of each field of a message that is a text or a message."""
    kinds = {FieldDescriptor.TYPE_MESSAGE: False, FieldDescriptor.TYPE_STRING: True}
    return [(field.name, _is_list(field), kinds[field.type]) for field in descriptor.fields if field.type in kinds]


@functools.cache
def _kind(field: Any) -> tuple[bool, bool] | None:
    """(whether a field is a list, whether it is a text); None where it is neither text nor message."""
    kinds = {FieldDescriptor.TYPE_MESSAGE: False, FieldDescriptor.TYPE_STRING: True}
    return (_is_list(field), kinds[field.type]) if field.type in kinds else None


def _is_list(field: Any) -> bool:
    # Newer protobufs have the property, and warn of the label; older ones have the label only.
    return bool(field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED)


SHARED_ELEMENTS = 1024
"""Initializers with more elements are shared. Our choice: no shape, which is read as a message, is as long."""


@frozen(eq=False)
class SharedModel:
    """A model whose copies, and the networks that are imported from them, share the contents of its initializers.

    Attributes:
        model: the model; large initializers have their contents in `external`.
        external: where external data may lie, and the contents in memory.
    """

    model: ModelProto
    external: ExternalData

    @classmethod
    def of(cls, model: ModelProto, external: ExternalData) -> SharedModel:
        """Share the initializers of a model, which stays as it is."""
        light = ModelProto()
        _copy_fields(model, light, "graph")
        _copy_fields(model.graph, light.graph, "initializer")
        for tensor in model.graph.initializer:
            copy = light.graph.initializer.add()
            if math.prod(tensor.dims) > SHARED_ELEMENTS and tensor.HasField("raw_data"):
                _copy_fields(tensor, copy, "raw_data")
                external.keep(copy, tensor.raw_data)
            else:
                copy.CopyFrom(tensor)
        return cls(light, external)

    def whole(self) -> ModelProto:
        """Return the model with its contents, as it was read."""
        model = ModelProto()
        model.CopyFrom(self.model)
        for tensor in model.graph.initializer:
            if self.external.is_in_memory(tensor):
                data = array_of(tensor, self.external).tobytes()
                tensor.ClearField("external_data")
                tensor.ClearField("data_location")
                tensor.raw_data = data
        return model


def _copy_fields(source: Any, target: Any, but: str) -> None:
    """Copy all fields of a message but one."""
    for field, value in source.ListFields():
        if field.name == but:
            continue
        if _is_list(field):
            getattr(target, field.name).extend(value)
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            getattr(target, field.name).CopyFrom(value)
        else:
            setattr(target, field.name, value)


ModelSource = str | os.PathLike[str] | bytes | onnx.ModelProto | SharedModel

LARGEST_FILE_BYTES = 2**31 - 1
"""A protobuf message cannot be larger. Source: protobuf, encoding; larger models keep their weights outside."""


def read_model(source: ModelSource, folder: Path | None = None) -> tuple[onnx.ModelProto, ExternalData]:
    """The model, and where its external data may lie.

    Args:
        source: a path, the bytes of a file, a message, or a shared model, of which a whole copy is made.
        folder: where external data lie, for bytes and messages; a path brings its own.

    Raises:
        OnnxImportError: there is no such file, or it is not a whole ONNX model.
    """
    if isinstance(source, SharedModel):
        return source.whole(), ExternalData(folder)
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
            "The file is not an ONNX model",
            where=where,
            found="no graph" if not model.HasField("graph") else "no IR version or no operator set",
            remedy="Pass the path of an ONNX model",
        )
    check_texts(model, where)
    return model, ExternalData(folder)


def shared_model(source: ModelSource, folder: Path | None = None) -> SharedModel:
    """As `read_model`, with contents that copies of the model share."""
    return source if isinstance(source, SharedModel) else SharedModel.of(*read_model(source, folder))


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
        raise OnnxImportError(
            "The file cannot be read",
            where=where,
            found=error.strerror or str(error),
            remedy="Check the path and its permissions",
        ) from error


def _parsed(data: bytes, where: str) -> onnx.ModelProto:
    try:
        model: onnx.ModelProto = onnx.ModelProto.FromString(data)
    except DecodeError as error:
        raise OnnxImportError(
            "The file is not an ONNX model, or is damaged",
            where=where,
            found=f"{len(data)} bytes that are not a protobuf message",
            remedy="Copy or export the model again",
        ) from error
    return model


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
            "The model cannot be written",
            where=f"file {str(path)!r}",
            found=error.strerror or str(error),
            remedy="Check the folder and its permissions",
        ) from error


def _check_size(path: Path, size: int) -> None:
    if size > LARGEST_FILE_BYTES:
        raise OnnxImportError(
            "The model is too large for one file",
            where=f"file {str(path)!r}",
            found=f"{size} bytes",
            allowed=f"at most {LARGEST_FILE_BYTES} bytes",
            remedy="Write it to the folder of the original model, to reuse its external data",
        )
