"""Activation functions and parametric ReLU, element by element, normalizations, and the error function of arrays.

Source: TensorRT's `ActivationType` and the ONNX operators of the same names.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dryfit.network.layers.activation import Activation, ActivationType, ParametricRelu
from dryfit.network.layers.normalization import Lrn, Normalization, Softmax, VectorFunction, VectorFunctionLayer
from dryfit.network.layers.ragged_softmax import RaggedSoftmax
from dryfit.network.layers.shape_inference import axes_in
from dryfit.network.tensor import Array
from dryfit.reference.precision import computed_in, rounded, widened
from dryfit.reference.registry import reference

_INTERVALS_PER_UNIT = 8
_DEGREE = 9
_SATURATION = 6.0
"""From here on erf is 1 in FP64."""


@functools.cache
def _coefficients() -> Array:
    """`float64[degree + 1, intervals]`: coefficients of the powers of the place in an interval, -1 to 1."""
    nodes = np.polynomial.chebyshev.chebpts1(_DEGREE + 1)
    columns = []
    for interval in range(int(_SATURATION * _INTERVALS_PER_UNIT)):
        x = (interval + (nodes + 1) / 2) / _INTERVALS_PER_UNIT
        values = [math.erf(place) / place for place in x.tolist()]
        series = np.polynomial.chebyshev.chebfit(nodes, values, _DEGREE)
        columns.append(np.polynomial.chebyshev.cheb2poly(series))
    return np.stack(columns, axis=1)


def erf(x: Array) -> Array:
    """The error function of each element, FP64, within 2e-15 relative of the true value.

    Source: measured against `math.erf`.
    """
    x = np.asarray(x, dtype=np.float64)
    place = np.minimum(np.abs(x), np.nextafter(_SATURATION, 0)) * _INTERVALS_PER_UNIT
    place = np.where(np.isnan(place), 0, place)
    interval = place.astype(np.intp)
    place = (place - interval) * 2 - 1
    coefficients = _coefficients()
    quotient: Array = coefficients[_DEGREE][interval]
    for power in range(_DEGREE - 1, -1, -1):
        quotient = quotient * place + coefficients[power][interval]
    return np.where(np.abs(x) < _SATURATION, x * quotient, np.sign(x))


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _gelu_tanh(x: Array) -> Array:
    # Step by step: in one line mypy takes six seconds to choose among NumPy's overloads.
    cubic: Array = 0.044715 * x**3
    inner: Array = math.sqrt(2 / math.pi) * (x + cubic)
    rises: Array = np.tanh(inner) + 1
    return 0.5 * x * rises


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
    ActivationType.HARD_SWISH: lambda x, a, b: x * np.clip(x + 3, 0, 6) / 6,
    ActivationType.THRESHOLDED_RELU: lambda x, a, b: np.where(x > a, x, 0),
    ActivationType.GELU_ERF: lambda x, a, b: 0.5 * x * (1 + erf(x / math.sqrt(2))),
    ActivationType.GELU_TANH: lambda x, a, b: _gelu_tanh(x),
}


@reference(Activation)
def activation(layer: Activation, inputs: Sequence[Array]) -> list[Array]:
    """`layer.activation_type` of each element."""
    x = widened(inputs[0])
    return [rounded(_FUNCTIONS[layer.activation_type](x, layer.alpha, layer.beta), inputs[0].dtype)]


@reference(ParametricRelu)
def parametric_relu(layer: ParametricRelu, inputs: Sequence[Array]) -> list[Array]:  # noqa: ARG001  it has no parameter
    """`x` where it is at least 0, else `x * slopes`."""
    x, slopes = inputs[0], widened(inputs[1])
    wide = widened(x)
    return [np.where(wide >= 0, x, rounded(wide * slopes, x.dtype))]


# Normalizations -------------------------------------------------------------------------------------------------------


@reference(Normalization)
def normalization(layer: Normalization, inputs: Sequence[Any]) -> list[Array]:
    """`(x - mean) / sqrt(variance + epsilon)` in the layer's `compute_precision`, then times scale plus bias."""
    x: Array
    x, scale, bias = (*inputs, None, None)[:3]
    shape = x.shape
    axes = axes_in(layer.axes)
    centred = x.astype(layer.compute_precision.numpy)
    if layer.num_groups > 1:
        centred = centred.reshape(shape[0], layer.num_groups, shape[1] // layer.num_groups, *shape[2:])
        axes = (2, *(axis + 1 for axis in axes))
    centred = centred - centred.mean(axis=axes, keepdims=True)
    variance = np.square(centred).mean(axis=axes, keepdims=True)
    y = (centred / np.sqrt(variance + layer.epsilon)).reshape(shape).astype(computed_in(x.dtype))
    if scale is not None:
        y = y * _per_channel(layer, widened(scale), shape)
    if bias is not None:
        y = y + _per_channel(layer, widened(bias), shape)
    return [rounded(y, x.dtype)]


def _per_channel(layer: Normalization, factor: Array, shape: tuple[int, ...]) -> Array:
    """A factor that has one value a group, repeated for the group's channels."""
    if layer.num_groups > 1 and factor.shape[1] == layer.num_groups != shape[1]:
        return np.repeat(factor, shape[1] // layer.num_groups, axis=1)
    return factor


@reference(Lrn)
def lrn(layer: Lrn, inputs: Sequence[Array]) -> list[Array]:
    """`x / (k + alpha / window_size * sum of squares) ^ beta`, the sum over neighbouring channels."""
    x = widened(inputs[0])
    channels = x.shape[1]
    before, after = (layer.window_size - 1) // 2, layer.window_size // 2
    squares = np.square(x)
    total = np.zeros_like(x)
    for shift in range(-min(before, channels - 1), min(after, channels - 1) + 1):
        first, end = max(-shift, 0), min(channels - shift, channels)
        total[:, first:end] += squares[:, first + shift : end + shift]
    y = x / (layer.k + layer.alpha / layer.window_size * total) ** layer.beta
    return [rounded(y, inputs[0].dtype)]


@reference(Softmax)
def softmax(layer: Softmax, inputs: Sequence[Array]) -> list[Array]:
    """`exp(x - max)` divided by its sum, along one axis."""
    x = widened(inputs[0])
    if not x.size:
        return [inputs[0]]
    y = np.exp(x - x.max(axis=layer.axis, keepdims=True))
    return [rounded(y / y.sum(axis=layer.axis, keepdims=True), inputs[0].dtype)]


@reference(VectorFunctionLayer)
def vector_function(layer: VectorFunctionLayer, inputs: Sequence[Array]) -> list[Array]:
    """The function of each vector along the layer's axis."""
    x, axis = widened(inputs[0]), layer.axis
    if not x.size:
        return [inputs[0]]
    if layer.function is VectorFunction.LOG_SOFTMAX:
        below = x - x.max(axis=axis, keepdims=True)
        return [rounded(below - np.log(np.exp(below).sum(axis=axis, keepdims=True)), inputs[0].dtype)]
    length = np.sqrt(np.square(x).sum(axis=axis, keepdims=True))
    return [rounded(x / np.maximum(length, x.dtype.type(1e-6)), inputs[0].dtype)]


@reference(RaggedSoftmax)
def ragged_softmax(layer: RaggedSoftmax, inputs: Sequence[Array]) -> list[Array]:  # noqa: ARG001  it has no parameter
    """The softmax of the elements before each bound, and 0 from there on."""
    x, bounds = widened(inputs[0]), inputs[1]
    if not x.size:
        return [inputs[0]]
    inside = np.arange(x.shape[2]) < bounds
    largest = np.where(inside, x, -np.inf).max(axis=2, keepdims=True)
    y = np.where(inside, np.exp(x - largest), 0)
    total = y.sum(axis=2, keepdims=True)
    return [rounded(np.where(inside, y / total, 0).astype(x.dtype), inputs[0].dtype)]
