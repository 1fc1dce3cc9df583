"""Activation functions: one activation layer where TensorRT has the function, else a short chain."""

from __future__ import annotations

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import Activation, ActivationType, ParametricRelu
from dryfit.network.layers.elementwise import ElementWiseOperation, Select
from dryfit.onnx.composition import add, divide, elementwise, multiply, scalar, subtract
from dryfit.onnx.node import Node
from dryfit.onnx.registry import operator
from dryfit.onnx.shapes import with_rank
from dryfit.onnx.tensors import NodeInput

_FLOAT_LIMIT = float(np.finfo(np.float32).max)


def activation(node: Node, x: NodeInput, kind: ActivationType, alpha: float = 0.0, beta: float = 0.0) -> NodeInput:
    """One activation layer."""
    return node.add(Activation(activation_type=kind, alpha=alpha, beta=beta), x)


def sigmoid(node: Node, x: NodeInput) -> NodeInput:
    """`1 / (1 + exp(-x))`."""
    return activation(node, x, ActivationType.SIGMOID)


@operator("Relu")
def relu(node: Node) -> NodeInput:
    """Activation; for integers, which no activation takes, the maximum with 0."""
    x = node[0]
    if x.dtype.is_floating_point:
        return activation(node, x, ActivationType.RELU)
    return elementwise(node, ElementWiseOperation.MAX, x, scalar(node, 0, x))


@operator("LeakyRelu")
def leaky_relu(node: Node) -> NodeInput:
    """Activation."""
    return activation(node, node[0], ActivationType.LEAKY_RELU, node.get_float("alpha", 0.01))


@operator("PRelu")
def prelu(node: Node) -> NodeInput:
    """Parametric ReLU; for integers, which it does not take, a select."""
    x, slope = node[0], with_rank(node, node[1], node[0].rank)
    if x.dtype.is_floating_point:
        return node.add(ParametricRelu(), x, slope)
    negative = elementwise(node, ElementWiseOperation.LESS, x, scalar(node, 0, x))
    return node.add(Select(), negative, multiply(node, x, slope), x)


@operator("ThresholdedRelu")
def thresholded_relu(node: Node) -> NodeInput:
    """Activation."""
    return activation(node, node[0], ActivationType.THRESHOLDED_RELU, node.get_float("alpha", 1.0))


@operator("Elu")
def elu(node: Node) -> NodeInput:
    """Activation."""
    return activation(node, node[0], ActivationType.ELU, node.get_float("alpha", 1.0))


@operator("Selu")
def selu(node: Node) -> NodeInput:
    """Activation."""
    alpha, gamma = (
        node.get_float("alpha", 1.67326319217681884765625),
        node.get_float("gamma", 1.05070102214813232421875),
    )
    return activation(node, node[0], ActivationType.SELU, alpha, gamma)


@operator("Celu")
def celu(node: Node) -> NodeInput:
    """An ELU of `x / alpha`, times `alpha`."""
    x, alpha = node[0], scalar(node, node.get_float("alpha", 1.0), node[0])
    return multiply(node, activation(node, divide(node, x, alpha), ActivationType.ELU, 1.0), alpha)


@operator("Sigmoid")
def sigmoid_operator(node: Node) -> NodeInput:
    """Activation."""
    return sigmoid(node, node[0])


@operator("HardSigmoid")
def hard_sigmoid(node: Node) -> NodeInput:
    """Activation."""
    return activation(
        node, node[0], ActivationType.HARD_SIGMOID, node.get_float("alpha", 0.2), node.get_float("beta", 0.5)
    )


@operator("HardSwish")
def hard_swish(node: Node) -> NodeInput:
    """The input times its hard sigmoid."""
    return multiply(node, node[0], activation(node, node[0], ActivationType.HARD_SIGMOID, 1 / 6, 0.5))


@operator("Tanh")
def tanh(node: Node) -> NodeInput:
    """Activation."""
    return activation(node, node[0], ActivationType.TANH)


@operator("Softplus")
def softplus(node: Node) -> NodeInput:
    """Activation."""
    return activation(node, node[0], ActivationType.SOFTPLUS, 1.0, 1.0)


@operator("Softsign")
def softsign(node: Node) -> NodeInput:
    """Activation."""
    return activation(node, node[0], ActivationType.SOFTSIGN)


@operator("Mish")
def mish(node: Node) -> NodeInput:
    """The input times the hyperbolic tangent of its softplus."""
    gate = activation(node, activation(node, node[0], ActivationType.SOFTPLUS, 1.0, 1.0), ActivationType.TANH)
    return multiply(node, node[0], gate)


@operator("Gelu")
@operator("Gelu", domain="com.microsoft")
def gelu(node: Node) -> NodeInput:
    """Activation, by the error function or by its approximation with tanh."""
    form = node.choice("approximate", "none", ("none", "tanh"))
    return activation(node, node[0], ActivationType.GELU_ERF if form == "none" else ActivationType.GELU_TANH)


@operator("Swish")
def swish(node: Node) -> NodeInput:
    """The input times the sigmoid of `alpha` times it."""
    return gated(node, node[0])


@operator("SwiGLU")
def swiglu(node: Node) -> NodeInput:
    """A swish of the first input, times the second."""
    return multiply(node, gated(node, node[0]), node[1])


def gated(node: Node, x: NodeInput) -> NodeInput:
    """`x * sigmoid(alpha * x)`."""
    alpha = node.get_float("alpha", 1.0)
    gate = x if alpha == 1.0 else multiply(node, x, scalar(node, alpha, x))
    return multiply(node, x, sigmoid(node, gate))


@operator("Shrink")
def shrink(node: Node) -> NodeInput:
    """Two comparisons and two selects."""
    x = node[0]
    bias, limit = scalar(node, node.get_float("bias", 0.0), x), node.get_float("lambd", 0.5)
    above = elementwise(node, ElementWiseOperation.GREATER, x, scalar(node, limit, x))
    below = elementwise(node, ElementWiseOperation.LESS, x, scalar(node, -limit, x))
    middle = node.add(Select(), below, add(node, x, bias), scalar(node, 0, x))
    return node.add(Select(), above, subtract(node, x, bias), middle)


@operator("Clip")
def clip_by_attributes(node: Node) -> NodeInput:
    """Activation."""
    return activation(
        node, node[0], ActivationType.CLIP, node.get_float("min", -_FLOAT_LIMIT), node.get_float("max", _FLOAT_LIMIT)
    )


@operator("Clip", since=11)
def clip(node: Node) -> NodeInput:
    """Activation where the bounds are known; else, and for integers, a maximum and a minimum."""
    x, low, high = node[0], node.input(1), node.input(2)
    if low is None and high is None:
        return x
    if x.dtype in (DataType.FLOAT, DataType.HALF, DataType.BF16) and all(b is None or b.is_known for b in (low, high)):
        bounds = [
            _FLOAT_LIMIT if bound is None else float(node.known(bound, "A bound").reshape(())) for bound in (low, high)
        ]
        return activation(node, x, ActivationType.CLIP, -_FLOAT_LIMIT if low is None else bounds[0], bounds[1])
    if low is not None:
        x = elementwise(node, ElementWiseOperation.MAX, x, low)
    return x if high is None else elementwise(node, ElementWiseOperation.MIN, x, high)
