"""Padding with zeros, and cropping, of the last two axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.layers.padding import Padding
from dryfit.reference.registry import Array, reference


@reference(Padding)
def padding(layer: Padding, inputs: Sequence[Array]) -> list[Array]:
    """The input with zeros around its last two axes; a view where it is only cropped."""
    x = inputs[0]
    top, left = layer.pre_padding_nd
    bottom, right = layer.post_padding_nd
    cropped = x[..., max(-top, 0) : x.shape[-2] - max(-bottom, 0), max(-left, 0) : x.shape[-1] - max(-right, 0)]
    top, left, bottom, right = (max(count, 0) for count in (top, left, bottom, right))
    if not (top or left or bottom or right):
        return [cropped]
    height, width = cropped.shape[-2:]
    output = np.zeros((*x.shape[:-2], top + height + bottom, left + width + right), x.dtype)
    output[..., top : top + height, left : left + width] = cropped
    return [output]
