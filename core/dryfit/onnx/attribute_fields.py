"""Attributes of a node as the fields of a layer plugin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from onnx import AttributeProto, TensorProto

from dryfit.network.layer_plugin import FieldValue
from dryfit.onnx.operand import Array
from dryfit.onnx.problems import ErrorCode, NodeRefusedError

ReadTensor = Callable[[TensorProto], Array]


def attribute_fields(attributes: Iterable[AttributeProto], read: ReadTensor) -> dict[str, FieldValue]:
    """Attribute name to its value; lists become tuples, and text that is not UTF-8 stays bytes.

    Args:
        attributes: a node's.
        read: the contents of a tensor of the model.

    Raises:
        NodeRefusedError: an attribute holds a graph, a sparse tensor or a type.
    """
    return {attribute.name: _value(attribute, read) for attribute in attributes}


def _value(attribute: AttributeProto, read: ReadTensor) -> FieldValue:
    if attribute.type not in _READERS:
        name = AttributeProto.AttributeType.Name
        raise NodeRefusedError(
            f"Attribute {attribute.name!r} has a type that a layer plugin cannot take",
            code=ErrorCode.UNSUPPORTED_NODE_ATTR,
            found=name(attribute.type),
            allowed=", ".join(map(name, _READERS)),
        )
    return _READERS[attribute.type](attribute, read)


def _text(data: bytes) -> str | bytes:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data


_READERS: Mapping[Any, Callable[[AttributeProto, ReadTensor], FieldValue]] = {
    AttributeProto.INT: lambda attribute, read: attribute.i,
    AttributeProto.FLOAT: lambda attribute, read: attribute.f,
    AttributeProto.STRING: lambda attribute, read: _text(attribute.s),
    AttributeProto.TENSOR: lambda attribute, read: read(attribute.t),
    AttributeProto.INTS: lambda attribute, read: tuple(attribute.ints),
    AttributeProto.FLOATS: lambda attribute, read: tuple(attribute.floats),
    AttributeProto.STRINGS: lambda attribute, read: tuple(map(_text, attribute.strings)),
    AttributeProto.TENSORS: lambda attribute, read: tuple(map(read, attribute.tensors)),
}
"""Type of an attribute to what reads it."""
