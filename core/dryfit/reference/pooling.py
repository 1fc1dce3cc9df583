"""Pooling, one place of the window after the other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np

from dryfit.network.layers.pooling import Pooling, PoolingType
from dryfit.reference.convolution import padded, views_under
from dryfit.reference.precision import rounded, widened
from dryfit.reference.registry import Array, reference


@reference(Pooling)
def pooling(layer: Pooling, inputs: Sequence[Array]) -> list[Array]:
    """The maximum, the average or a blend of both of each window, and the indices of maxima where asked for."""
    x = inputs[0]
    if layer.pooling_type is PoolingType.MAX:
        if layer.returns_indices:
            return _maximum_and_indices(layer, x)
        return [rounded(_maximum(layer, _comparable(x)), x.dtype)]
    average = _average(layer, widened(x))
    if layer.pooling_type is PoolingType.AVERAGE:
        return [rounded(average, x.dtype)]
    blend = (1 - layer.blend_factor) * _maximum(layer, widened(x)) + layer.blend_factor * average
    return [rounded(blend.astype(average.dtype), x.dtype)]


def views_of_windows(layer: Pooling, x: Array, fill: float) -> list[Array]:
    """For each place in the window, row after row, the elements `[N, C, *outputs]` under it; outside x lies `fill`."""
    window = (layer.window_size_nd, layer.stride_nd, layer.dilation_nd)
    outputs = layer.output_extents(x.shape[2:])
    pre_padding = [pre for pre, _ in layer.paddings(x.shape[2:])]
    return [view for _, view in views_under(padded(x, *window, pre_padding, outputs, fill), *window, outputs)]


def _comparable(x: Array) -> Array:
    """The elements in a type in which all of them can be compared: integers of at least 8 bits in their own."""
    return x if np.issubdtype(x.dtype, np.integer) else widened(x)


def _lowest(x: Array) -> float:
    return -math.inf if np.issubdtype(x.dtype, np.floating) else int(np.iinfo(x.dtype).min)


def _maximum(layer: Pooling, x: Array) -> Array:
    return reduce(np.maximum, views_of_windows(layer, x, _lowest(x)))


def _average(layer: Pooling, x: Array) -> Array:
    views = views_of_windows(layer, x, 0)
    total = views[0].copy()
    for view in views[1:]:
        total += view
    return (total / counted_elements(layer, x.shape[2:])).astype(total.dtype)


def counted_elements(layer: Pooling, spatial: Sequence[int]) -> Array:
    """Elements of each window that an average counts: `[*outputs]`."""
    counts = np.ones((), np.float64)
    axes = zip(
        spatial,
        layer.window_size_nd,
        layer.stride_nd,
        layer.dilation_nd,
        layer.paddings(spatial),
        layer.output_extents(spatial),
        strict=True,
    )
    for extent, window, stride, dilation, (pre, post), output in axes:
        places = np.arange(output)[:, None] * stride - pre + np.arange(window) * dilation
        first, end = (0, extent) if layer.average_count_excludes_padding else (-pre, extent + post)
        along = ((places >= first) & (places < end)).sum(axis=1)
        counts = counts[..., None] * along
    return counts


def _maximum_and_indices(layer: Pooling, x: Array) -> list[Array]:
    """The maxima, and the index of the first one of each window in the flattened input."""
    values = _comparable(x)
    spatial = x.shape[2:]
    windows = np.stack(views_of_windows(layer, values, _lowest(values)))
    places = np.arange(math.prod(spatial), dtype=np.int64)
    places = places.reshape(spatial, order="F" if layer.column_major_indices else "C")[None, None]
    # Padding has no index. It can hold the maximum only beside elements that are as low: they win.
    under = np.stack(views_of_windows(layer, places, -1))
    is_maximum = (windows == windows.max(axis=0)) & (under >= 0)
    chosen = np.argmax(is_maximum, axis=0)[None]
    index = np.take_along_axis(np.broadcast_to(under, windows.shape), chosen, axis=0)[0]
    planes = np.arange(x.shape[0] * x.shape[1]).reshape(x.shape[:2] + (1,) * len(spatial)) * math.prod(spatial)
    return [rounded(windows.max(axis=0), x.dtype), (index + planes).astype(np.int64)]
