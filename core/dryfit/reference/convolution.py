"""Sums of products: convolution, deconvolution, fully connected layers, products of matrices; and pooling windows.

FP16 and BF16: a kernel is rounded to the input's type, a bias is not (devices keep it in their accumulator's type);
sums are FP32, and the result is rounded once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np

from dryfit.network.layers.convolution import Convolution, Deconvolution, FullyConnected
from dryfit.network.layers.matrix import Einsum, MatrixMultiply, MatrixOperation
from dryfit.network.layers.window_layer import Pooling, PoolingType, dilated
from dryfit.network.tensor import Array
from dryfit.reference.precision import computed_in, rounded, weights_for, widened
from dryfit.reference.registry import compute_type, reference


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


WeightedSum = Convolution | Deconvolution | FullyConnected


def input_and_kernel(layer: WeightedSum, inputs: Sequence[Array | None]) -> tuple[Array, Array]:
    """The input as it is, and the kernel (input 1, or the parameter) in the type that is computed in.

    Raises:
        NetworkError: there is no input or no kernel.
    """
    x = inputs[0] if inputs else None
    kernel = inputs[1] if len(inputs) > 1 and inputs[1] is not None else layer.kernel
    if x is None or kernel is None:
        raise layer.problem(
            "The layer has no input" if x is None else "The layer has no kernel",
            remedy="Connect input 0" if x is None else "Set `kernel`, or connect input 1",
        )
    return x, weights_for(x, kernel)


def finished(layer: WeightedSum, inputs: Sequence[Array | None], sums: Array, x: Array) -> Array:
    """Sums `[N, K, *spatial]` plus the bias (input 2, or the parameter), rounded to the input's type."""
    bias = inputs[2] if len(inputs) > 2 and inputs[2] is not None else layer.bias
    if bias is not None:
        sums = sums + bias.astype(computed_in(x.dtype)).reshape(-1, *(1,) * (sums.ndim - 2))
    return rounded(sums, x.dtype)


@reference(Convolution)
def convolution(layer: Convolution, inputs: Sequence[Array | None]) -> list[Array]:
    """Cross-correlation with the kernel, plus bias."""
    x, kernel = input_and_kernel(layer, inputs)
    spatial = layer.output_extents(x.shape[2:])
    window = (layer.kernel_size_nd, layer.stride_nd, layer.dilation_nd)
    source = padded(widened(x), *window, [pre for pre, _ in layer.paddings(x.shape[2:])], spatial, 0)
    groups, maps = layer.num_groups, layer.num_output_maps
    y = np.zeros((x.shape[0], maps, *spatial), source.dtype)
    if kernel.shape[1] == 1:
        # One input channel a group: the products are elementwise, and unfolding would only cost memory.
        for place, view in views_under(source, *window, spatial):
            under: tuple[Any, ...] = (slice(None), 0, *place)
            factors = kernel[under].reshape(maps, *(1,) * len(spatial))
            y += np.repeat(view, maps // groups, axis=1) * factors
        return [finished(layer, inputs, y, x)]
    rows = kernel.reshape(groups, maps // groups, -1)
    for sample in range(x.shape[0]):
        views = [view[0] for _, view in views_under(source[sample : sample + 1], *window, spatial)]
        columns = np.stack(views, axis=1).reshape(groups, rows.shape[2], math.prod(spatial))
        y[sample] = np.matmul(rows, columns).reshape(maps, *spatial)
    return [finished(layer, inputs, y, x)]


@reference(Deconvolution)
def deconvolution(layer: Deconvolution, inputs: Sequence[Array | None]) -> list[Array]:
    """Each input element times the kernel, added up where the windows overlap; then the paddings cut off; plus bias."""
    x, kernel = input_and_kernel(layer, inputs)
    source = widened(x)
    samples, channels, *spatial = source.shape
    groups, maps = layer.num_groups, layer.num_output_maps
    weights = kernel.reshape(groups, channels // groups, -1).swapaxes(1, 2)
    elements = source.reshape(samples, groups, channels // groups, -1)
    columns = np.matmul(weights, elements).reshape(samples, maps, *layer.kernel_size_nd, *spatial)

    window = (layer.kernel_size_nd, layer.stride_nd, layer.dilation_nd)
    full = [
        max(extent - 1, 0) * stride + dilated(size, spread)
        for extent, size, stride, spread in zip(spatial, *window, strict=True)
    ]
    # A negative padding makes room behind (or before) the last window; what lies there has no sum, only the bias.
    room = [(max(-pre, 0), max(-post, 0)) for pre, post in layer.paddings(x.shape[2:])]
    y = np.zeros(
        (samples, maps, *(before + f + after for f, (before, after) in zip(full, room, strict=True))), source.dtype
    )
    inside = y[:, :, *(slice(before, before + f) for f, (before, _) in zip(full, room, strict=True))]
    for place, target in views_under(inside, *window, spatial):
        np.add(target, columns[(slice(None), slice(None), *place)], out=target)
    kept = tuple(
        slice(max(pre, 0), extent - max(post, 0))
        for extent, (pre, post) in zip(y.shape[2:], layer.paddings(x.shape[2:]), strict=True)
    )
    return [finished(layer, inputs, y[:, :, *kept], x)]


@reference(FullyConnected)
def fully_connected(layer: FullyConnected, inputs: Sequence[Array | None]) -> list[Array]:
    """`x[..., (c, h, w)] @ kernel[k, (c, h, w)]` transposed, plus bias."""
    x, kernel = input_and_kernel(layer, inputs)
    maps = layer.num_output_channels
    rows = widened(x).reshape(-1, int(np.prod(x.shape[-3:])))
    sums = rows @ kernel.reshape(maps, -1).T
    y = finished(layer, inputs, sums.reshape(-1, maps, 1, 1), x)
    return [y.reshape(*x.shape[:-3], maps, 1, 1)]


# Products of matrices -------------------------------------------------------------------------------------------------


@reference(MatrixMultiply)
def matrix_multiply(layer: MatrixMultiply, inputs: Sequence[Array]) -> list[Array]:
    """`op0(x) @ op1(y)` over broadcast batch axes; sums are FP32 for narrower floating-point types."""
    dtype = inputs[0].dtype
    x, y = (operand.astype(compute_type(dtype), copy=False) for operand in inputs)
    if layer.op0 is not MatrixOperation.NONE:
        x = x[..., None, :] if layer.op0 is MatrixOperation.VECTOR else x.swapaxes(-1, -2)
    if layer.op1 is not MatrixOperation.NONE:
        y = y[..., :, None] if layer.op1 is MatrixOperation.VECTOR else y.swapaxes(-1, -2)
    product = np.matmul(x, y)
    if layer.op0 is MatrixOperation.VECTOR:
        product = product[..., 0, :]
    if layer.op1 is MatrixOperation.VECTOR:
        product = product[..., 0]
    return [rounded(product, dtype)]


@reference(Einsum)
def einsum(layer: Einsum, inputs: Sequence[Array]) -> list[Array]:
    """The equation, by numpy; sums are FP32 for narrower floating-point types."""
    dtype = inputs[0].dtype
    terms, output = layer.terms()
    operands = [operand.astype(compute_type(dtype), copy=False) for operand in inputs]
    y = np.einsum(f"{','.join(terms)}->{output}", *operands, optimize=True)
    return [rounded(np.asarray(y), dtype)]


# Pooling --------------------------------------------------------------------------------------------------------------


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
