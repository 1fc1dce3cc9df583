"""Matrix products of any rank, Gemm, einsum and determinants.

With constant weights Gemm becomes a fully connected layer, which is what accelerators have for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.convolution import FullyConnected
from dryfit.network.layers.generators import Constant
from dryfit.network.layers.matrix import Einsum, MatrixMultiply, MatrixOperation
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.layers.slice import Shuffle
from dryfit.network.tensor import Array, Tensor
from dryfit.onnx.composition import add, add_plugin, multiply, scalar
from dryfit.onnx.node import Node
from dryfit.onnx.problems import ErrorCode
from dryfit.onnx.registry import operator
from dryfit.onnx.shapes import squeeze, with_rank
from dryfit.onnx.tensors import NodeInput


@operator("Gemm")
def gemm(node: Node) -> NodeInput:
    """Fully connected where B is constant or a quantized constant, and C a bias; else matrix multiply, scale, add."""
    a, b, c = node[0], node[1], node.input(2)
    if a.rank != 2 or b.rank != 2:
        raise node.refusal(
            "The inputs of Gemm must be matrices",
            code=ErrorCode.INVALID_NODE,
            found=f"{a.shape} and {b.shape}",
            remedy="Use MatMul, or reshape the inputs",
        )
    alpha, beta = node.get_float("alpha", 1.0), node.get_float("beta", 1.0)
    trans_a, trans_b = bool(node.get_int("transA", 0)), bool(node.get_int("transB", 0))
    outputs = b.shape[0 if trans_b else 1]
    bias = _bias(c, outputs, beta)
    integers = c if bias is None and beta == 1.0 and _is_integer_bias(c, outputs) else None
    if integers is not None:
        bias = np.zeros(0, np.float32)
    if not trans_a and not a.is_known and a.dtype.is_floating_point and bias is not None:
        if b.value is not None:
            kernel = _scaled(b.value if trans_b else b.value.T, alpha)
            layer = FullyConnected(num_output_channels=outputs, kernel=kernel)
            return _fully_connected(node, a, layer, bias, None, integers)
        weights = _quantized_weights(node, b, trans_b) if alpha == 1.0 else None
        if weights is not None:
            return _fully_connected(node, a, FullyConnected(num_output_channels=outputs), bias, weights, integers)
    operations = [MatrixOperation.TRANSPOSE if flag else MatrixOperation.NONE for flag in (trans_a, trans_b)]
    y = node.add(MatrixMultiply(op0=operations[0], op1=operations[1]), a, b)
    if alpha != 1.0:
        y = multiply(node, y, scalar(node, alpha, y))
    if c is None or beta == 0.0:
        return y
    return add(node, y, c if beta == 1.0 else multiply(node, c, scalar(node, beta, c)))


def _fully_connected(
    node: Node,
    a: NodeInput,
    layer: FullyConnected,
    bias: Array,
    weights: NodeInput | None,
    integers: NodeInput | None,
) -> NodeInput:
    layer.bias = bias if bias.size else None
    others = [] if weights is None and integers is None else [weights]
    y = node.add(layer, _with_spatial_axes(node, a), *others, *([] if integers is None else [integers]))
    return squeeze(node, y, (2, 3))


def _is_integer_bias(c: NodeInput | None, outputs: int) -> bool:
    """Whether C is a vector that is dequantized from INT32, which networks with a quantize method keep."""
    producer = None if c is None or c.tensor is None else c.tensor.producer
    data = producer.inputs[0] if isinstance(producer, Dequantize) else None
    return c is not None and c.shape == (outputs,) and data is not None and data.dtype is DataType.INT32


def _scaled(weights: Array, factor: float) -> Array:
    return weights if factor == 1.0 else (weights.astype(np.float32) * np.float32(factor)).astype(weights.dtype)


def _bias(c: NodeInput | None, outputs: int, beta: float) -> Array | None:
    """`beta * c` as one value an output (empty where there is no C), or None where it is not known or no bias."""
    if c is None or beta == 0.0:
        return np.zeros(0, np.float32)
    if c.value is None or (c.rank == 2 and c.shape[0] != 1) or c.value.size not in (1, outputs):
        return None
    return _scaled(np.broadcast_to(c.value.reshape(-1), (outputs,)), beta)


def _quantized_weights(node: Node, b: NodeInput, trans_b: bool) -> NodeInput | None:
    """Weights `[outputs, inputs]` of a constant that is quantized, or None where B is something else.

    The constant is dequantized (weights that are stored quantized), or quantized and dequantized. One the other way
    round is turned before that, so that the layer's weights stay a dequantized constant; the axis of its scales turns
    with it: 0 in models from PyTorch (`transB`), 1 in those from TensorFlow.

    Source: TensorRT "Working with Quantized Types", ONNX support, warning on Gemm.
    """
    layers: list[Layer] = []
    tensor = b.tensor
    while tensor is not None and isinstance(tensor.producer, Quantize | Dequantize):
        layers.append(tensor.producer)
        tensor = tensor.producer.inputs[0]
    constant = tensor.producer if tensor is not None else None
    if [type(layer) for layer in layers] not in _WEIGHTS or not isinstance(constant, Constant):
        return None
    if trans_b:
        return b
    if any(len(t.shape) > 1 and t.spec.value is None for layer in layers for t in layer.inputs[1:] if t is not None):
        return None
    weights = node.array(constant.weights.reshape(constant.shape).T)
    for layer in reversed(layers):
        factors = [_turned(node, tensor) for tensor in layer.inputs[1:]]
        weights = _instead_of(layer, node.add(_turned_layer(layer), weights, *factors, fold=False))
    return weights


_WEIGHTS: list[list[type[Layer]]] = [[Dequantize], [Dequantize, Quantize]]
"""What may stand behind quantized weights, from the weights to their constant."""


def _turned_layer(layer: Layer) -> Layer:
    """A quantize or dequantize layer as it is for the transposed matrix, with no connections."""
    turned: Any = _copy(layer)
    turned.axis = 1 - turned.axis if turned.axis >= 0 else -1
    turned.block_shape = tuple(reversed(turned.block_shape))
    return turned  # type: ignore[no-any-return]


def _turned(node: Node, tensor: Tensor | None) -> NodeInput | None:
    """A scale or zero point for turned weights: one a block is a matrix, and turned too."""
    if tensor is None:
        return None
    operand = NodeInput(tensor.name, tensor.spec, tensor)
    return node.array(operand.value.T) if operand.rank == 2 and operand.value is not None else operand


def _with_spatial_axes(node: Node, a: NodeInput) -> NodeInput:
    """`a[N, C]` as `[N, C, 1, 1]`, or what it was flattened from; before a quantize and dequantize between them."""
    unflattened = _unflattened(a)
    if unflattened is not None:
        return unflattened
    layer = a.tensor.producer if a.tensor is not None else None
    if isinstance(layer, Quantize | Dequantize) and layer.axis == -1 and not layer.block_shape:
        source = layer.inputs[0]
        if source is not None:
            x = _with_spatial_axes(node, NodeInput(source.name, source.spec, source))
            factors = [None if t is None else NodeInput(t.name, t.spec, t) for t in layer.inputs[1:]]
            return _instead_of(layer, node.add(_copy(layer), x, *factors, fold=False))
    dims = a.shape if a.spec.is_static else (0, 0)
    return node.add(Shuffle(reshape_dims=(*dims, 1, 1)), a)


def _unflattened(a: NodeInput) -> NodeInput | None:
    """What a flattened `[N, C, H, W]` was before, so that the fully connected layer takes it directly."""
    producer = a.tensor.producer if a.tensor is not None else None
    if not isinstance(producer, Shuffle) or producer.first_transpose or producer.second_transpose:
        return None
    source = producer.inputs[0]
    if source is None or len(producer.inputs) != 1 or len(source.shape) != 4 or source.shape[0] != a.shape[0]:
        return None
    if any(extent < 0 for extent in source.shape[1:]) or a.shape[1] != int(np.prod(source.shape[1:])):
        return None
    return NodeInput(source.name, source.spec, source)


def _copy(layer: Layer) -> Layer:
    """A layer with the same parameters and no connections."""
    return type(layer)(**{field.name: getattr(layer, field.name) for field in type(layer).parameters()})


def _instead_of(layer: Layer, operand: NodeInput) -> NodeInput:
    """The output of a layer that was added in the place of another, and came from that one's node too."""
    if operand.tensor is not None and operand.tensor.producer is not None:
        operand.tensor.producer.onnx_nodes = layer.onnx_nodes
    return operand


@operator("MatMul")
def matmul(node: Node) -> NodeInput:
    """Matrix multiply; an operand with one axis is a vector."""
    a, b = node[0], node[1]
    if a.rank < 1 or b.rank < 1:
        raise node.refusal(
            "The inputs of a matrix product must not be scalars", code=ErrorCode.INVALID_NODE, remedy="Use Mul"
        )
    rank_a, rank_b = max(a.rank, 2), max(b.rank, 2)
    batch = max(rank_a, rank_b) - 2
    op_a = MatrixOperation.VECTOR if a.rank == 1 else MatrixOperation.NONE
    op_b = MatrixOperation.VECTOR if b.rank == 1 else MatrixOperation.NONE
    a = with_rank(node, a, batch + (1 if a.rank == 1 else 2))
    b = with_rank(node, b, batch + (1 if b.rank == 1 else 2))
    return node.add(MatrixMultiply(op0=op_a, op1=op_b), a, b)


@operator("Einsum")
def einsum(node: Node) -> NodeInput:
    """Einsum."""
    equation = node.get_string("equation", "")
    return node.add(Einsum(equation=equation), *(node[index] for index in range(len(node.inputs))))


@operator("Det")
def determinant(node: Node) -> NodeInput:
    """The layer plugin `Det`."""
    return add_plugin(node, "Det", {}, node[0])[0]
