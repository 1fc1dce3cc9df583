"""Activations, softmax and normalization of vectors."""

from __future__ import annotations

import numpy as np

from dryfit.network.layers.activation import Activation, ActivationType, ParametricRelu
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation, Unary, UnaryOperation
from dryfit.network.layers.normalization import Softmax, VectorFunction, VectorFunctionLayer
from dryfit.network.layers.reduction import Reduce, ReduceOperation
from dryfit.network.tensor import Tensor
from dryfit_tflite.operator_view import Operator
from dryfit_tflite.registry import operator

_PLAIN = {
    "RELU": (ActivationType.RELU, 0.0, 0.0),
    "RELU6": (ActivationType.CLIP, 0.0, 6.0),
    "RELU_N1_TO_1": (ActivationType.CLIP, -1.0, 1.0),
    "RELU_0_TO_1": (ActivationType.CLIP, 0.0, 1.0),
    "LOGISTIC": (ActivationType.SIGMOID, 0.0, 0.0),
    "TANH": (ActivationType.TANH, 0.0, 0.0),
    "ELU": (ActivationType.ELU, 1.0, 0.0),
}
"""Operator to activation, alpha and beta."""


@operator(*_PLAIN)
def activation(op: Operator) -> None:
    """Activation."""
    kind, alpha, beta = _PLAIN[op.record.name]
    first = op.works_channels_first(0)
    layer = Activation(activation_type=kind, alpha=alpha, beta=beta)
    op.give(op.add(layer, op.real(0, first=first)), first=first)


@operator("LEAKY_RELU")
def leaky_relu(op: Operator) -> None:
    """Activation LEAKY_RELU."""
    first = op.works_channels_first(0)
    layer = Activation(activation_type=ActivationType.LEAKY_RELU, alpha=op.option("Alpha"))
    op.give(op.add(layer, op.real(0, first=first)), first=first)


@operator("GELU")
def gelu(op: Operator) -> None:
    """Activation GELU_ERF, or GELU_TANH if the options ask for the approximation."""
    first = op.works_channels_first(0)
    kind = ActivationType.GELU_TANH if op.option("Approximate") else ActivationType.GELU_ERF
    op.give(op.add(Activation(activation_type=kind), op.real(0, first=first)), first=first)


@operator("HARD_SWISH")
def hard_swish(op: Operator) -> None:
    """Activation HARD_SWISH; in real numbers `x * hard_sigmoid(x)`, which devices have."""
    first = op.works_channels_first(0)
    x = op.real(0, first=first)
    if op.output().is_quantized:
        op.give(op.add(Activation(activation_type=ActivationType.HARD_SWISH), x), first=first)
        return
    gate = op.add(Activation(activation_type=ActivationType.HARD_SIGMOID, alpha=1 / 6, beta=0.5), x)
    op.give(op.add(Elementwise(op=ElementWiseOperation.PROD), x, gate), first=first)


@operator("PRELU")
def parametric_relu(op: Operator) -> None:
    """Parametric ReLU."""
    first = op.value(0).is_only_channels_first
    x = op.real(0, first=first)
    op.give(op.add(ParametricRelu(), x, op.real_of_rank(1, op.rank(0), first=first)), first=first)


@operator("SOFTMAX")
def softmax(op: Operator) -> None:
    """Softmax over the last axis, of the input times the options' beta."""
    x = _times(op, op.real(0), op.option("Beta", 1.0))
    op.give(op.add(Softmax(axes=1 << (op.rank(0) - 1)), x))


def _times(op: Operator, x: Tensor, factor: float) -> Tensor:
    if factor == 1.0:
        return x
    one = op.constant_tensor(np.full((1,) * len(x.shape), factor, np.float32), f"{op.name} beta")
    return op.add(Elementwise(op=ElementWiseOperation.PROD), x, one)


def _of_last_axis(op: Operator, function: VectorFunction) -> VectorFunctionLayer:
    return VectorFunctionLayer(function=function, axes=1 << (op.rank(0) - 1))


@operator("LOG_SOFTMAX")
def log_softmax(op: Operator) -> None:
    """Logarithm of a softmax over the last axis; on codes one layer."""
    if op.is_one_on_codes:
        op.give(op.add(_of_last_axis(op, VectorFunction.LOG_SOFTMAX), op.real(0)))
        return
    result = op.add(Softmax(axes=1 << (op.rank(0) - 1)), op.real(0))
    op.give(op.add(Unary(op=UnaryOperation.LOG), result))


@operator("L2_NORMALIZATION")
def l2_normalization(op: Operator) -> None:
    """The input over the root of the sum of squares along the last axis, at least 1e-6; on codes one layer."""
    if op.is_one_on_codes and not op.option("FusedActivationFunction"):
        op.give(op.add(_of_last_axis(op, VectorFunction.L2_NORMALIZATION), op.real(0)))
        return
    x = op.real(0)
    squares = op.add(Elementwise(op=ElementWiseOperation.PROD), x, x)
    total = op.add(Reduce(op=ReduceOperation.SUM, axes=1 << (op.rank(0) - 1), keep_dims=True), squares)
    norm = op.add(Unary(op=UnaryOperation.SQRT), total)
    least = op.constant_tensor(np.full((1,) * op.rank(0), 1e-6, np.float32), f"{op.name} least")
    norm = op.add(Elementwise(op=ElementWiseOperation.MAX), norm, least)
    op.give(
        op.activated(op.add(Elementwise(op=ElementWiseOperation.DIV), x, norm), op.option("FusedActivationFunction"))
    )
