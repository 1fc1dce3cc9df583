"""Deconvolution by a matrix product whose columns are added into the output."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.layers.deconvolution import Deconvolution
from dryfit.network.layers.spatial_window import dilated
from dryfit.reference.precision import widened
from dryfit.reference.registry import Array, reference
from dryfit.reference.weighted_sums import finished, input_and_kernel
from dryfit.reference.windows import views_under


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
