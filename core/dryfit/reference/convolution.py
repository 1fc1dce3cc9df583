"""Convolution by matrix products over unfolded windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dryfit.network.layers.convolution import Convolution
from dryfit.reference.precision import widened
from dryfit.reference.registry import Array, reference
from dryfit.reference.weighted_sums import finished, input_and_kernel
from dryfit.reference.windows import padded, views_under


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
