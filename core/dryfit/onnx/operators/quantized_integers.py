"""Operators that compute on quantized integers, as real ones between dequantizations and quantizations.

They are imported into networks with a quantize method only, which makes integer arithmetic of them again: devices take
no such operators from ONNX.

Source: ONNX `QLinearConv`, `QLinearMatMul`; ONNX Runtime, contributed operators of the domain `com.microsoft`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.normalization import Softmax
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.layers.reduction import ReduceOperation
from dryfit.network.layers.shape_inference import mask_of
from dryfit.onnx.composition import add, concatenate, multiply, positive_axis, reduce
from dryfit.onnx.node import Node
from dryfit.onnx.node_meaning import integer_operator
from dryfit.onnx.operators.activation import activation
from dryfit.onnx.operators.convolution import convolution, pooling
from dryfit.onnx.operators.matrix import gemm, matmul
from dryfit.onnx.problems import ErrorCode
from dryfit.onnx.quantization import check_scales
from dryfit.onnx.registry import OperatorFunction, Result, operator
from dryfit.onnx.tensors import NodeInput

MICROSOFT = "com.microsoft"


def _for_methods(*op_types: str, domain: str = "") -> Callable[[OperatorFunction], OperatorFunction]:
    """Register a function for operators that are refused where the network has no quantize method."""

    def register(function: OperatorFunction) -> OperatorFunction:
        @functools.wraps(function)
        def import_or_refuse(node: Node) -> Result:
            refusal = None if node.quantize_method else integer_operator(node.op_type, domain)
            if refusal is not None:
                raise refusal
            return function(node)

        operator(*op_types, domain=domain)(import_or_refuse)
        return function

    return register


@_for_methods("QLinearConv")
def quantized_convolution(node: Node) -> NodeInput:
    """Inputs x, w and y each with scale and zero point, then the bias: INT32 in units of x scale * w scale."""
    x = _dequantized(node, 0)
    weights = _dequantized(node, 3, axis=0)
    bias = _dequantized_bias(node, node.input(8), node[1], node[4])
    return _quantized(node, convolution(node.on(x, weights, bias)), node[6], node.input(7), node[0])


@_for_methods("QLinearMatMul")
@_for_methods("QLinearMatMul", domain=MICROSOFT)
def quantized_matmul(node: Node) -> NodeInput:
    """Inputs a, b and y, each with scale and zero point."""
    product = matmul(node.on(_dequantized(node, 0), _dequantized(node, 3, axis=node[3].rank - 1)))
    return _quantized(node, product, node[6], node.input(7), node[0])


@_for_methods("QGemm", domain=MICROSOFT)
def quantized_gemm(node: Node) -> NodeInput:
    """Inputs a and b with scale and zero point, c: INT32 in units of a scale * b scale, y; real numbers without y."""
    a = _dequantized(node, 0)
    b = _dequantized(node, 3, axis=0 if node.get_int("transB", 0) else 1)
    y = gemm(node.on(a, b, _dequantized_bias(node, node.input(6), node[1], node[4])))
    scale = node.input(7)
    return _one(y) if scale is None else _quantized(node, y, scale, node.input(8), node[0])


@_for_methods("QLinearAdd", "QLinearMul", domain=MICROSOFT)
def quantized_elementwise(node: Node) -> NodeInput:
    """Inputs a, b and c, each with scale and zero point."""
    compute = add if node.op_type == "QLinearAdd" else multiply
    result = compute(node, _dequantized(node, 0), _dequantized(node, 3))
    return _quantized(node, result, node[6], node.input(7), node[0])


@_for_methods("QLinearAveragePool", "QLinearGlobalAveragePool", domain=MICROSOFT)
def quantized_average(node: Node) -> NodeInput:
    """Inputs x and y, each with scale and zero point; channels stand before the spatial axes."""
    if node.get_int("channels_last", 0):
        raise node.refusal(
            "The channel axis must come before the spatial axes",
            code=ErrorCode.UNSUPPORTED_NODE_ATTR,
            found="channels_last=1",
            remedy="Add transposes around the node",
        )
    x = _dequantized(node, 0)
    if node.op_type == "QLinearAveragePool":
        result = _one(pooling(node.on(x)))
    else:
        result = reduce(node, ReduceOperation.AVG, x, range(2, x.rank), keep_dims=True)
    return _quantized(node, result, node[3], node.input(4), node[0])


@_for_methods("QLinearLeakyRelu", "QLinearSigmoid", domain=MICROSOFT)
def quantized_activation(node: Node) -> NodeInput:
    """Inputs x and y, each with scale and zero point."""
    x = _dequantized(node, 0)
    if node.op_type == "QLinearSigmoid":
        result = activation(node, x, ActivationType.SIGMOID)
    else:
        result = activation(node, x, ActivationType.LEAKY_RELU, node.get_float("alpha", 0.01))
    return _quantized(node, result, node[3], node.input(4), node[0])


@_for_methods("QLinearSoftmax", domain=MICROSOFT)
def quantized_softmax(node: Node) -> NodeInput:
    """Inputs x and y, each with scale and zero point; `opset` says how `axis` is meant."""
    x = _dequantized(node, 0)
    axis = positive_axis(node, node.get_int("axis", -1), x.rank)
    behind = [index for index in range(axis, x.rank) if x.shape[index] != 1]
    if node.get_int("opset", 0) < 13 and behind not in ([], [axis]):
        raise node.refusal(
            "Before opset 13, softmax over several axes is not supported",
            code=ErrorCode.UNSUPPORTED_NODE_ATTR,
            found=f"axis {axis} of {x.shape}",
            allowed="the last axis that is longer than 1",
            remedy="Convert the model to opset 13, or reshape the input",
        )
    result = node.add(Softmax(axes=mask_of([axis])), x)
    return _quantized(node, result, node[3], node.input(4), node[0])


@_for_methods("QLinearConcat", domain=MICROSOFT)
def quantized_concatenation(node: Node) -> NodeInput:
    """Inputs: y scale and zero point, then each tensor with its own."""
    tensors = [_dequantized(node, index) for index in range(2, len(node.inputs), 3)]
    axis = positive_axis(node, node.get_int("axis", 0), tensors[0].rank)
    return _quantized(node, concatenate(node, tensors, axis), node[0], node.input(1), node[2])


def _dequantized(node: Node, index: int, axis: int = -1) -> NodeInput:
    """An input in real numbers; its scale and zero point are the two inputs after it."""
    data, scale = node[index], node[index + 1]
    check_scales(node, scale)
    layer = Dequantize(axis=-1 if scale.rank == 0 or scale.shape == (1,) else axis)
    return node.add(layer, data, scale, _zero_point(node.input(index + 2)), fold=False)


def _dequantized_bias(
    node: Node, bias: NodeInput | None, x_scale: NodeInput, weights_scale: NodeInput
) -> NodeInput | None:
    if bias is None:
        return None
    scales = [node.known(one, "The scale of an operator with a bias") for one in (x_scale, weights_scale)]
    unit = (scales[0].reshape(()) * scales[1].reshape(-1)).astype(np.float32)
    scale = node.array(unit if unit.size > 1 else unit.reshape(()))
    return node.add(Dequantize(axis=0 if unit.size > 1 else -1), bias, scale, fold=False)


def _quantized(node: Node, real: Result, scale: NodeInput, zero_point: NodeInput | None, like: NodeInput) -> NodeInput:
    """What the operator gives; without a zero point codes of the input's type. The real layer gets the node's name."""
    node.name_last()
    check_scales(node, scale)
    to_type: DataType = like.dtype if zero_point is None else zero_point.dtype
    return node.add(Quantize(to_type=to_type), _one(real), scale, _zero_point(zero_point), fold=False)


def _one(result: Result) -> NodeInput:
    return result if isinstance(result, NodeInput) else result[0]


def _zero_point(operand: NodeInput | None) -> NodeInput | None:
    """The zero point; None where it is absent or known to be 0."""
    is_zero = operand is not None and operand.value is not None and not operand.value.any()
    return None if is_zero else operand
