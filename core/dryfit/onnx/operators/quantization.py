"""ONNX's quantize and dequantize. They are never folded: a quantized weight has to reach the device as it is.

The division is in FP32 (FP64 for FP64 data) whatever `precision` says, as ONNX Runtime has it.
"""

from __future__ import annotations

from dryfit.network.data_types import DataType
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.quantize import Quantize
from dryfit.network.layers.reduce import ReduceOperation
from dryfit.network.layers.unary import UnaryOperation
from dryfit.onnx.composition import cast, divide, elementwise, reduce, subtract, unary
from dryfit.onnx.node import Node
from dryfit.onnx.operand import Operand
from dryfit.onnx.quantization import add_dequantize, add_quantize, quantized_type
from dryfit.onnx.registry import TENSORRT_DOMAIN, operator


@operator("QuantizeLinear")
@operator("QuantizeLinear", domain="com.microsoft")
def quantize_linear(node: Node) -> Operand:
    """Quantize."""
    return add_quantize(node, node[0], node[1], quantized_type(node, DataType.UINT8))


@operator("DequantizeLinear")
@operator("DequantizeLinear", domain="com.microsoft")
@operator("DequantizeLinear", domain=TENSORRT_DOMAIN)
def dequantize_linear(node: Node) -> Operand:
    """Dequantize; an INT32 constant, which is the bias of a quantized layer, is turned into real numbers at once."""
    return add_dequantize(node, node[0], node[1])


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
