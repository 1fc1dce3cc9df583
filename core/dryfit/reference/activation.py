"""Activation functions, element by element.

Source: TensorRT's `ActivationType` and the ONNX operators of the same names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from dryfit.network.layers.activation import Activation, ActivationType
from dryfit.reference.error_function import erf
from dryfit.reference.precision import rounded, widened
from dryfit.reference.registry import Array, reference


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


_FUNCTIONS: dict[ActivationType, Callable[[Array, float, float], Array]] = {
    ActivationType.RELU: lambda x, a, b: np.maximum(x, 0),
    ActivationType.SIGMOID: lambda x, a, b: _sigmoid(x),
    ActivationType.TANH: lambda x, a, b: np.tanh(x),
    ActivationType.LEAKY_RELU: lambda x, a, b: np.where(x >= 0, x, a * x),
    ActivationType.ELU: lambda x, a, b: np.where(x >= 0, x, a * np.expm1(x)),
    ActivationType.SELU: lambda x, a, b: b * np.where(x > 0, x, a * np.expm1(x)),
    ActivationType.SOFTSIGN: lambda x, a, b: x / (1 + np.abs(x)),
    ActivationType.SOFTPLUS: lambda x, a, b: a * np.logaddexp(0, b * x),
    ActivationType.CLIP: lambda x, a, b: np.minimum(np.maximum(x, a), b),
    ActivationType.HARD_SIGMOID: lambda x, a, b: np.clip(a * x + b, 0, 1),
    ActivationType.SCALED_TANH: lambda x, a, b: a * np.tanh(b * x),
    ActivationType.THRESHOLDED_RELU: lambda x, a, b: np.where(x > a, x, 0),
    ActivationType.GELU_ERF: lambda x, a, b: 0.5 * x * (1 + erf(x / math.sqrt(2))),
    ActivationType.GELU_TANH: lambda x, a, b: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
}


@reference(Activation)
def activation(layer: Activation, inputs: Sequence[Array]) -> list[Array]:
    """`layer.activation_type` of each element."""
    x = widened(inputs[0])
    return [rounded(_FUNCTIONS[layer.activation_type](x, layer.alpha, layer.beta), inputs[0].dtype)]
