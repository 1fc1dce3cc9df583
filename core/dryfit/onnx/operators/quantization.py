"""Quantize and dequantize. They are never folded: a quantized weight has to reach the device as it is."""

from __future__ import annotations

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.dequantize import Dequantize
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.quantize import Quantize
from dryfit.network.layers.reduce import ReduceOperation
from dryfit.network.layers.unary import UnaryOperation
from dryfit.onnx.composition import cast, divide, elementwise, positive_axis, reduce, subtract, unary
from dryfit.onnx.node import Node
from dryfit.onnx.operand import Operand
from dryfit.onnx.problems import ErrorCode
from dryfit.onnx.registry import operator
from dryfit.onnx.tensors import data_type


def _granularity(node: Node, x: Operand, scale: Operand) -> tuple[int, tuple[int, ...]]:
    """(axis, block shape) as the layers have them: axis -1 and no block for one scale."""
    block_size = node.get_int("block_size", 0)
    if scale.rank == 0 or scale.shape == (1,):
        return -1, ()
    axis = positive_axis(node, node.get_int("axis", 1), x.rank)
    if scale.rank == 1 and not block_size:
        return axis, ()
    if block_size < 1 or scale.rank != x.rank:
        raise node.refusal(
            "The scale is one number, a vector along `axis`, or one number a block",
            code=ErrorCode.UNSUPPORTED_NODE_SHAPE,
            found=f"scale {scale.shape}, block size {block_size}",
        )
    return axis, tuple(block_size if index == axis else 1 for index in range(x.rank))


def _zero_point(node: Node) -> Operand | None:
    """The zero point, or None where there is none or where it is known to be 0, which is all that devices have."""
    operand = node.input(2)
    if operand is not None and operand.value is not None and not np.any(operand.value.astype(np.float32)):
        return None
    return operand


@operator("QuantizeLinear")
@operator("QuantizeLinear", domain="com.microsoft")
def quantize_linear(node: Node) -> Operand:
    """Quantize."""
    x, scale, zero_point = node[0], node[1], node.input(2)
    axis, block_shape = _granularity(node, x, scale)
    to_type = zero_point.dtype if zero_point is not None else DataType.UINT8
    if node.get_int("output_dtype", 0):
        to_type = data_type(node.get_int("output_dtype", 0), "attribute 'output_dtype'")
    layer = Quantize(axis=axis, to_type=to_type, block_shape=block_shape, saturate=bool(node.get_int("saturate", 1)))
    return node.add(layer, x, scale, _zero_point(node), fold=False)


@operator("DequantizeLinear")
@operator("DequantizeLinear", domain="com.microsoft")
def dequantize_linear(node: Node) -> Operand:
    """Dequantize; an INT32 constant, which is the bias of a quantized layer, is turned into real numbers at once."""
    x, scale = node[0], node[1]
    axis, block_shape = _granularity(node, x, scale)
    to_type = scale.dtype
    if node.get_int("output_dtype", 0):
        to_type = data_type(node.get_int("output_dtype", 0), "attribute 'output_dtype'")
    layer = Dequantize(axis=axis, to_type=to_type, block_shape=block_shape)
    return node.add(layer, x, scale, _zero_point(node), fold=x.dtype is DataType.INT32)


@operator("DynamicQuantizeLinear")
def dynamic_quantize_linear(node: Node) -> list[Operand]:
    """Quantize, with a scale and a zero point that follow from the smallest and the largest element."""
    x = node[0]
    axes = tuple(range(x.rank))
    zero = node.array(0, x.dtype.numpy)
    largest, smallest = (
        elementwise(node, bound, reduce(node, extreme, x, axes, keep_dims=False) if axes else x, zero)
        for bound, extreme in (
            (ElementWiseOperation.MAX, ReduceOperation.MAX),
            (ElementWiseOperation.MIN, ReduceOperation.MIN),
        )
    )
    scale = divide(node, subtract(node, largest, smallest), node.array(255, x.dtype.numpy))
    place = unary(node, UnaryOperation.ROUND, divide(node, subtract(node, zero, smallest), scale))
    place = elementwise(node, ElementWiseOperation.MIN, place, node.array(255, x.dtype.numpy))
    zero_point = cast(node, elementwise(node, ElementWiseOperation.MAX, place, zero), DataType.UINT8)
    quantized = node.add(Quantize(to_type=DataType.UINT8), x, scale, zero_point)
    return [quantized, scale, zero_point]
