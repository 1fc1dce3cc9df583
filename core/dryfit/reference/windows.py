"""Windows that slide over the spatial axes of an array, for convolution and pooling."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from dryfit.network.layers.spatial_window import dilated
from dryfit.reference.registry import Array


def padded(
    x: Array,
    window: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    pre_padding: Sequence[int],
    outputs: Sequence[int],
    fill: float,
) -> Array:
    """`x[N, C, *spatial]` with as much of `fill` around it as the windows of `outputs` need; x itself where none."""
    pads = [(0, 0), (0, 0)]
    for extent, *axis in zip(x.shape[2:], window, stride, dilation, pre_padding, outputs, strict=True):
        kernel, step, spread, pre, output = axis
        pads.append((pre, max((output - 1) * step + dilated(kernel, spread) - extent - pre, 0)))
    return np.pad(x, pads, constant_values=fill) if any(map(any, pads)) else x


def views_under(
    x: Array, window: Sequence[int], stride: Sequence[int], dilation: Sequence[int], outputs: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], Array]]:
    """For each place in the window: the place, and the view `[N, C, *outputs]` of x that lies under it."""
    for place in itertools.product(*(range(extent) for extent in window)):
        slices = tuple(
            slice(index * spread, index * spread + (output - 1) * step + 1, step)
            for index, spread, step, output in zip(place, dilation, stride, outputs, strict=True)
        )
        yield place, x[:, :, *slices]
