"""Scales and zero points spread over the elements that they serve."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.layer import Layer
from dryfit.network.layers.scale_granularity import block_extents
from dryfit.reference.registry import Array


def spread(layer: Layer, scale: Array, shape: tuple[int, ...], axis: int, block_shape: Sequence[int]) -> Array:
    """The scale (or zero point) in a form that broadcasts against data of this shape.

    Raises:
        NetworkError: it does not fit the data.
    """
    blocks = block_extents(layer, shape, scale.shape, axis, block_shape)
    if scale.size == 1:
        return scale.reshape(())
    if scale.ndim == 1 and len(shape) != 1:
        return scale.reshape([-1 if i == axis else 1 for i in range(len(shape))])
    for i, (block, extent) in enumerate(zip(blocks, shape, strict=True)):
        if scale.shape[i] != 1 and block != 1:
            scale = np.repeat(scale, block, axis=i)[(slice(None),) * i + (slice(extent),)]
    return scale
