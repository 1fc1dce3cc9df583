"""Operators that make tensors from parameters or from a shape."""

from __future__ import annotations

import math

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.elementwise import ElementWiseOperation, Select, UnaryOperation
from dryfit.network.layers.generators import Fill, FillOperation
from dryfit.network.tensor import Array
from dryfit.onnx.composition import cast, divide, elementwise, scalar, subtract, unary
from dryfit.onnx.folding import LARGEST_FOLDED_BYTES
from dryfit.onnx.node import Node
from dryfit.onnx.problems import ErrorCode
from dryfit.onnx.registry import operator
from dryfit.onnx.shapes import elements_of, expand, unsqueeze
from dryfit.onnx.tensors import NodeInput, data_type

_LARGEST_CONSTANT_ELEMENTS = 2**32
"""Our choice: the largest weights are smaller, and a few bytes of a model can ask for any number."""


@operator("Constant")
def constant(node: Node) -> NodeInput:
    """A constant, where a layer needs one."""
    value = node.get_array("value")
    if value is not None:
        return node.array(value)
    if node.has("value_float"):
        return node.array(node.get_float("value_float", 0.0), np.float32)
    if node.has("value_int"):
        return node.array(node.get_int("value_int", 0), np.int64)
    if node.has("value_floats"):
        return node.array(node.get_floats("value_floats"), np.float32)
    if node.has("value_ints"):
        return node.array(node.get_ints("value_ints"), np.int64)
    raise node.refusal(
        "The constant must be a tensor or numbers",
        code=ErrorCode.UNSUPPORTED_NODE_ATTR,
        found=", ".join(attribute.name for attribute in node.proto.attribute) or "no attribute",
        remedy="Export the constant as a tensor",
    )


@operator("ConstantOfShape")
def constant_of_shape(node: Node) -> NodeInput:
    """A constant that takes no memory; a slice with strides of 0 where the shape is computed at run time."""
    value = node.get_array("value")
    number: Array = np.zeros(1, np.float32) if value is None else value.reshape(1)
    shape = elements_of(node, node[0])
    extents = [extent for extent in shape if isinstance(extent, int)]
    if len(extents) < len(shape):
        return expand(node, node.array(number), shape)
    if math.prod(extents) > _LARGEST_CONSTANT_ELEMENTS or min(extents, default=0) < 0:
        raise node.refusal(
            "This shape is not supported",
            code=ErrorCode.INVALID_VALUE,
            found=tuple(extents),
            remedy="Fix the shape",
        )
    return node.array(np.broadcast_to(number.reshape(()), extents))


@operator("Range")
def number_range(node: Node) -> NodeInput:
    """A constant, or a fill where a bound is computed at run time."""
    start, limit, delta = node[0], node[1], node[2]
    if start.value is not None and limit.value is not None and delta.value is not None:
        return node.array(_range(node, start.value, limit.value, delta.value))
    wide = DataType.DOUBLE
    span = subtract(node, cast(node, limit, wide), cast(node, start, wide))
    steps = unary(node, UnaryOperation.CEIL, divide(node, span, cast(node, delta, wide)))
    count = elementwise(node, ElementWiseOperation.MAX, cast(node, steps, DataType.INT64), node.array(0, np.int64))
    layer = Fill(shape=(), operation=FillOperation.LINSPACE, to_type=start.dtype)
    return node.add(layer, count if count.rank else unsqueeze(node, count, (0,)), start, delta)


def _range(node: Node, start: Array, limit: Array, delta: Array) -> Array:
    """`start + i * delta`, in FP32 at least and rounded once.

    Raises:
        NodeRefusedError: there is no end to it.
    """
    dtype = start.dtype
    narrow = DataType.from_numpy(dtype).is_floating_point and dtype.itemsize < 4
    first, last, step = (value.reshape(()).astype(np.float32 if narrow else dtype) for value in (start, limit, delta))
    if not step:
        raise node.refusal("The step of a range must not be 0", code=ErrorCode.INVALID_VALUE, remedy="Fix the step")
    count = max(math.ceil((float(last) - float(first)) / float(step)), 0)
    if count * dtype.itemsize > LARGEST_FOLDED_BYTES:
        raise node.refusal(
            "The range is too long",
            code=ErrorCode.INVALID_VALUE,
            found=f"{count} elements",
            remedy="Compute the range at run time, or shorten it",
        )
    numbers: Array = (first + np.arange(count, dtype=first.dtype) * step).astype(dtype)
    return numbers


def _check_size(node: Node, rows: int, columns: int) -> None:
    """Refuse a constant matrix that is too large: it is made of numbers of 8 bytes, whatever its type.

    Raises:
        NodeRefusedError: it is.
    """
    if rows * columns * 8 > LARGEST_FOLDED_BYTES:
        raise node.refusal(
            "The matrix is too large for a constant",
            code=ErrorCode.INVALID_VALUE,
            found=(rows, columns),
            allowed=f"at most {LARGEST_FOLDED_BYTES // 8} elements",
            remedy="Reduce its size",
        )


@operator("EyeLike")
def eye_like(node: Node) -> NodeInput:
    """A constant: only the shape of the input matters."""
    x = node[0]
    rows, columns = node.static_shape(x, "The input of EyeLike")
    _check_size(node, rows, columns)
    dtype = data_type(node.get_int("dtype", 0), f"node {node.name!r}") if node.has("dtype") else x.dtype
    return node.array(np.eye(rows, columns, node.get_int("k", 0)).astype(dtype.numpy))


@operator("Trilu")
def triangle(node: Node) -> NodeInput:
    """A select between the input and 0, by the distance from the diagonal."""
    x = node[0]
    diagonal = node.input(1) or node.array(0, np.int64)
    rows, columns = x.shape[-2:]
    if min(rows, columns) < 0:
        node.static_shape(x, "The matrices of Trilu")
    _check_size(node, rows, columns)
    distance = np.arange(columns)[None, :] - np.arange(rows)[:, None]
    places = node.array(distance.reshape((1,) * (x.rank - 2) + distance.shape), np.int64)
    op = ElementWiseOperation.LESS if node.get_int("upper", 1) else ElementWiseOperation.GREATER
    outside = elementwise(node, op, places, diagonal)
    return node.add(Select(), outside, scalar(node, 0, x), x)
