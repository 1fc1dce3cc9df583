"""Quantize and dequantize, of ONNX and of the `trt` domain, which Model Optimizer and Transformer Engine write.

They are never folded: a quantized weight has to reach the device as it is. The division is in FP32 (FP64 for FP64 data)
whatever `precision` says, as ONNX Runtime has it.

TensorRT's ONNX parser takes the `trt` domain; attributes, defaults and the order of inputs and outputs are its own.
Source: onnx-tensorrt, onnxOpImporters.cpp (10.13); Model Optimizer, torch/quantization/export_onnx.py.
"""

from __future__ import annotations

from dryfit.network.data_types import DataType
from dryfit.network.layers.elementwise import ElementWiseOperation, UnaryOperation
from dryfit.network.layers.quantization import DynamicQuantize, Quantize
from dryfit.network.layers.reduction import ReduceOperation
from dryfit.network.tensor import Array
from dryfit.onnx.composition import cast, divide, elementwise, positive_axis, reduce, subtract, unary
from dryfit.onnx.node import Node
from dryfit.onnx.problems import ErrorCode
from dryfit.onnx.quantization import add_dequantize, add_quantize, quantized_type
from dryfit.onnx.registry import TENSORRT_DOMAIN, operator
from dryfit.onnx.tensors import NodeInput, data_type


@operator("QuantizeLinear")
@operator("QuantizeLinear", domain="com.microsoft")
def quantize_linear(node: Node) -> NodeInput:
    """Quantize."""
    return add_quantize(node, node[0], node[1], quantized_type(node, DataType.UINT8))


@operator("DequantizeLinear")
@operator("DequantizeLinear", domain="com.microsoft")
@operator("DequantizeLinear", domain=TENSORRT_DOMAIN)
def dequantize_linear(node: Node) -> NodeInput:
    """Dequantize; an INT32 constant, which is the bias of a quantized layer, is turned into real numbers at once."""
    return add_dequantize(node, node[0], node[1])


@operator("DynamicQuantizeLinear")
def dynamic_quantize_linear(node: Node) -> list[NodeInput]:
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


_FP4_BLOCK, _FP8_BLOCK = 16, 32


@operator("QuantizeLinear", domain=TENSORRT_DOMAIN)
def tensorrt_quantize_linear(node: Node) -> NodeInput:
    """Quantize, to INT8 where neither zero point nor `output_dtype` say otherwise."""
    return add_quantize(node, node[0], node[1], quantized_type(node, DataType.INT8))


@operator("TRT_FP8QuantizeLinear", domain=TENSORRT_DOMAIN)
def quantize_to_fp8(node: Node) -> NodeInput:
    """Quantize to FP8 E4M3."""
    return add_quantize(node, node[0], node[1], quantized_type(node, DataType.FP8))


@operator("TRT_FP8DequantizeLinear", domain=TENSORRT_DOMAIN)
def dequantize_fp8(node: Node) -> NodeInput:
    """Dequantize of FP8 E4M3, which constants may hold as UINT8."""
    return add_dequantize(node, _of_bits(node[0], DataType.FP8), node[1])


@operator("TRT_INT4QuantizeLinear", domain=TENSORRT_DOMAIN)
def quantize_to_int4(node: Node) -> NodeInput:
    """Quantize to INT4."""
    return add_quantize(node, node[0], node[1], quantized_type(node, DataType.INT4))


@operator("TRT_INT4DequantizeLinear", domain=TENSORRT_DOMAIN)
def dequantize_int4(node: Node) -> NodeInput:
    """Dequantize of INT4."""
    return add_dequantize(node, node[0], node[1])


@operator("TRT_MXFP8QuantizeLinear", domain=TENSORRT_DOMAIN)
def quantize_to_mxfp8(node: Node) -> NodeInput:
    """Quantize to FP8 E4M3 in blocks whose scales are powers of two, which constants may hold as UINT8."""
    return add_quantize(node, node[0], _of_bits(node[1], DataType.E8M0), DataType.FP8)


@operator("TRT_MXFP8DequantizeLinear", domain=TENSORRT_DOMAIN)
def dequantize_mxfp8(node: Node) -> NodeInput:
    """Dequantize of FP8 E4M3 in blocks whose scales are powers of two; constants may hold both as UINT8."""
    return add_dequantize(node, _of_bits(node[0], DataType.FP8), _of_bits(node[1], DataType.E8M0))


@operator("TRT_MXFP8DynamicQuantize", domain=TENSORRT_DOMAIN)
def dynamic_quantize_to_mxfp8(node: Node) -> list[NodeInput]:
    """Dynamic quantize to FP8 E4M3 in blocks of 32; the second output are their scales, powers of two."""
    axis = positive_axis(node, node.get_int("axis", -1), node[0].rank)
    _check_type(node, "output_dtype", DataType.FP8)
    block = node.get_int("block_size", _FP8_BLOCK)
    layer = DynamicQuantize(axis=axis, block_size=block, to_type=DataType.FP8, scale_type=DataType.E8M0)
    return node.add_all(layer, node[0], fold=False)


@operator("TRT_FP4DynamicQuantize", domain=TENSORRT_DOMAIN)
def dynamic_quantize_to_fp4(node: Node) -> list[NodeInput]:
    """Dynamic quantize to FP4 E2M1 in blocks of 16; the second output are their scales, quantized to FP8."""
    axis = positive_axis(node, node.get_int("axis", 1), node[0].rank)
    _check_type(node, "scale_type", DataType.FP8)
    node.constant(1, "The scale of the scales")
    block = node.get_int("block_size", _FP4_BLOCK)
    layer = DynamicQuantize(axis=axis, block_size=block, to_type=DataType.FP4, scale_type=DataType.FP8)
    return node.add_all(layer, node[0], node[1], fold=False)


def _check_type(node: Node, attribute: str, expected: DataType) -> None:
    number = node.get_int(attribute, 0)
    found = data_type(number, f"attribute {attribute!r}") if number else expected
    if found is not expected:
        raise node.refusal(
            f"This value of attribute {attribute!r} is not supported",
            code=ErrorCode.UNSUPPORTED_NODE_ATTR,
            found=found.name,
            allowed=expected.name,
            remedy="Export the model with the supported value",
        )


def _of_bits(operand: NodeInput, dtype: DataType) -> NodeInput:
    """Known UINT8 values as the bit patterns of another 8-bit type; anything else as it is."""
    if operand.value is None or operand.dtype is not DataType.UINT8:
        return operand
    bits: Array = operand.value.view(dtype.numpy)
    return NodeInput.known(operand.name, bits)
