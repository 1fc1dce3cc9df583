"""Instance, group, layer and local response normalization, and softmax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dryfit.network.layers.normalization import Lrn, Normalization, Softmax
from dryfit.network.layers.shape_inference import axes_in
from dryfit.reference.precision import computed_in, rounded, widened
from dryfit.reference.registry import Array, reference


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
