"""Fully connected: one matrix product."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.layers.fully_connected import FullyConnected
from dryfit.reference.precision import widened
from dryfit.reference.registry import Array, reference
from dryfit.reference.weighted_sums import finished, input_and_kernel


@reference(FullyConnected)
def fully_connected(layer: FullyConnected, inputs: Sequence[Array | None]) -> list[Array]:
    """`x[..., (c, h, w)] @ kernel[k, (c, h, w)]` transposed, plus bias."""
    x, kernel = input_and_kernel(layer, inputs)
    maps = layer.num_output_channels
    rows = widened(x).reshape(-1, int(np.prod(x.shape[-3:])))
    sums = rows @ kernel.reshape(maps, -1).T
    y = finished(layer, inputs, sums.reshape(-1, maps, 1, 1), x)
    return [y.reshape(*x.shape[:-3], maps, 1, 1)]
