"""ONNX tensors and attributes as numpy arrays, without a second copy where the file has the bytes as numpy wants them.

Every size is checked against the bytes that are there before an array is made, so that a file that lies about its
extents costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from onnx import AttributeProto, TensorProto

from dryfit.errors import OnnxImportError
from dryfit.network.data_types import DataType
from dryfit.network.layer_plugin import FieldValue
from dryfit.network.packed_elements import unpacked
from dryfit.network.tensor import Array, Shape, Tensor, TensorSpec
from dryfit.onnx.external_data import ExternalData
from dryfit.onnx.problems import ErrorCode, NodeRefusedError

LARGEST_SHAPE_RANK = 64
"""A longer vector of integers is no list of extents: numpy arrays have at most this many axes."""
Extent = int | tuple[str, int] | None
"""One element of a shape computation: a number, the (tensor, axis) whose extent it is, or None where unknown."""


@attrs.define(eq=False)
class NodeInput:
    """One ONNX value.

    Attributes:
        name: its name in the model.
        spec: shape, type, and the contents where they are known.
        tensor: the network's tensor; None for a known array that no layer has needed yet.
        extents: the elements of a one-axis integer value as far as they are known, where `spec.value` is not.
    """

    name: str
    spec: TensorSpec
    tensor: Tensor | None = None
    extents: tuple[Extent, ...] | None = None

    @classmethod
    def known(cls, name: str, value: Array) -> NodeInput:
        """An operand whose contents are known."""
        return cls(name, TensorSpec.of(value))

    @property
    def value(self) -> Array | None:
        """The contents, or None."""
        return self.spec.value

    @property
    def shape(self) -> Shape:
        """Extents; -1 where dynamic."""
        return self.spec.shape

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.spec.shape)

    @property
    def dtype(self) -> DataType:
        """Element type."""
        return self.spec.dtype

    @property
    def is_known(self) -> bool:
        """Whether the contents are known."""
        return self.spec.value is not None

    def known_extents(self) -> tuple[Extent, ...] | None:
        """The elements as a shape computation sees them; None where nothing is known, or this is no list of extents."""
        if self.dtype not in (DataType.INT32, DataType.INT64) or self.rank > 1:
            return None
        if self.spec.value is not None and self.spec.value.size <= LARGEST_SHAPE_RANK:
            return tuple(int(element) for element in self.spec.value.reshape(-1))
        return self.extents


def specs_of(operands: Sequence[NodeInput | None]) -> list[TensorSpec | None]:
    """The specs of a layer's inputs."""
    return [None if operand is None else operand.spec for operand in operands]


def values_of(operands: Sequence[NodeInput | None]) -> list[Array | None]:
    """The contents of a layer's inputs, None where absent or not known."""
    return [None if operand is None else operand.value for operand in operands]


DATA_TYPES: dict[int, DataType] = {
    TensorProto.FLOAT: DataType.FLOAT,
    TensorProto.FLOAT16: DataType.HALF,
    TensorProto.BFLOAT16: DataType.BF16,
    TensorProto.DOUBLE: DataType.DOUBLE,
    TensorProto.INT8: DataType.INT8,
    TensorProto.UINT8: DataType.UINT8,
    TensorProto.INT16: DataType.INT16,
    TensorProto.UINT16: DataType.UINT16,
    TensorProto.INT32: DataType.INT32,
    TensorProto.UINT32: DataType.UINT32,
    TensorProto.INT64: DataType.INT64,
    TensorProto.UINT64: DataType.UINT64,
    TensorProto.BOOL: DataType.BOOL,
    TensorProto.FLOAT8E4M3FN: DataType.FP8,
    TensorProto.FLOAT8E4M3FNUZ: DataType.FP8_E4M3FNUZ,
    TensorProto.FLOAT8E5M2: DataType.FP8_E5M2,
    TensorProto.FLOAT8E5M2FNUZ: DataType.FP8_E5M2FNUZ,
}
"""ONNX's number of an element type to the network's data type; types that are newer than the installed onnx follow."""

for _name, _dtype in {
    "FLOAT8E8M0": DataType.E8M0,
    "FLOAT4E2M1": DataType.FP4,
    "INT4": DataType.INT4,
    "UINT4": DataType.UINT4,
    "INT2": DataType.INT2,
    "UINT2": DataType.UINT2,
}.items():
    if hasattr(TensorProto, _name):
        DATA_TYPES[getattr(TensorProto, _name)] = _dtype

_BIT_PATTERNS_IN_INT32 = {"float16": np.uint16, "bfloat16": np.uint16}


def data_type(number: int, where: str) -> DataType:
    """The data type of ONNX's element type number.

    Raises:
        OnnxImportError: networks have no such type (strings, complex numbers).
    """
    if number not in DATA_TYPES:
        names = {value: name for name, value in TensorProto.DataType.items()}
        raise OnnxImportError(
            "This element type is not supported",
            where=where,
            found=names.get(number, number),
            allowed=", ".join(dtype.text for dtype in DATA_TYPES.values()),
            remedy="Cast the tensor to a supported type",
        )
    return DATA_TYPES[number]


def array_of(tensor: TensorProto, external: ExternalData) -> Array:
    """The contents of an ONNX tensor; a view of the file or of the message where no element needs conversion.

    Raises:
        OnnxImportError: the element type has no counterpart, extents and bytes disagree, or the external data are
            not where the model may point.
    """
    where = f"tensor {tensor.name!r}"
    dtype = data_type(tensor.data_type, where)
    shape = tuple(tensor.dims)
    if any(extent < 0 for extent in shape):
        raise OnnxImportError(
            "Dimensions must not be negative",
            where=where,
            found=shape,
            remedy="The file is damaged; export the model again",
        )
    try:
        if tensor.data_location != TensorProto.EXTERNAL:
            return _contents(tensor, dtype, shape, where)
        return external.decoded(
            tensor,
            lambda: _decode(external.bytes_of(tensor, dtype.bytes_of(math.prod(shape))), dtype, shape, where),
        )
    except ValueError as error:  # NumPy's limits, of the number of axes and of extents beside one of 0
        raise OnnxImportError(
            "This shape is not supported",
            where=where,
            found=shape,
            allowed=str(error),
            remedy="The file is damaged; export the model again",
        ) from error


def _contents(tensor: TensorProto, dtype: DataType, shape: tuple[int, ...], where: str) -> Array:
    if tensor.HasField("raw_data"):
        return _decode(np.frombuffer(tensor.raw_data, np.uint8), dtype, shape, where)
    return _from_fields(tensor, dtype, shape, where)


def _decode(data: Array, dtype: DataType, shape: tuple[int, ...], where: str) -> Array:
    elements = math.prod(shape)
    if data.size != dtype.bytes_of(elements):
        raise OnnxImportError(
            "The number of bytes does not match the shape of the tensor",
            where=where,
            found=f"{data.size} bytes",
            allowed=f"{dtype.bytes_of(elements)} bytes for {dtype.text} {shape}",
            remedy="The file is corrupt or truncated; copy or export it again",
        )
    if dtype.bits < 8:
        return unpacked(data, dtype, elements).reshape(shape)
    return data.view(dtype.numpy).reshape(shape)


def _from_fields(tensor: TensorProto, dtype: DataType, shape: tuple[int, ...], where: str) -> Array:
    """The contents of a tensor that is stored number by number, as small ones are."""
    if dtype is DataType.FLOAT:
        values = np.asarray(tensor.float_data, np.float32)
    elif dtype is DataType.DOUBLE:
        values = np.asarray(tensor.double_data, np.float64)
    elif dtype is DataType.INT64:
        values = np.asarray(tensor.int64_data, np.int64)
    elif dtype in (DataType.UINT32, DataType.UINT64):
        values = np.asarray(tensor.uint64_data, np.uint64).astype(dtype.numpy)
    elif dtype.bits < 8:
        values = unpacked(np.asarray(tensor.int32_data, np.int32).astype(np.uint8), dtype, math.prod(shape))
    elif dtype.numpy_name in _BIT_PATTERNS_IN_INT32:
        values = np.asarray(tensor.int32_data, np.int32).astype(np.uint16).view(dtype.numpy)
    elif dtype.is_floating_point:
        values = np.asarray(tensor.int32_data, np.int32).astype(np.uint8).view(dtype.numpy)
    else:
        values = np.asarray(tensor.int32_data, np.int32).astype(dtype.numpy)
    if values.size != math.prod(shape):
        raise OnnxImportError(
            "The number of values does not match the shape of the tensor",
            where=where,
            found=f"{values.size} values",
            allowed=f"{math.prod(shape)} for shape {shape}",
            remedy="The file is corrupt or truncated; copy or export it again",
        )
    return values.reshape(shape)


ReadTensor = Callable[[TensorProto], Array]


def attribute_fields(attributes: Iterable[AttributeProto], read: ReadTensor) -> dict[str, FieldValue]:
    """Attribute name to its value; lists become tuples, and text that is not UTF-8 stays bytes.

    Raises:
        NodeRefusedError: an attribute holds a graph, a sparse tensor or a type.
    """
    return {attribute.name: _value(attribute, read) for attribute in attributes}


def _value(attribute: AttributeProto, read: ReadTensor) -> FieldValue:
    if attribute.type not in _READERS:
        name = AttributeProto.AttributeType.Name
        raise NodeRefusedError(
            f"The type of attribute {attribute.name!r} is not supported for layer plugins",
            code=ErrorCode.UNSUPPORTED_NODE_ATTR,
            found=name(attribute.type),
            allowed=", ".join(map(name, _READERS)),
            remedy="Export the attribute with another type",
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
