"""Instance, group and layer normalization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dryfit.network.layers.axes_mask import axes_in
from dryfit.network.layers.normalization import Normalization
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
