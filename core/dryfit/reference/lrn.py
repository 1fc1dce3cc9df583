"""Local response normalization."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.layers.lrn import Lrn
from dryfit.reference.precision import rounded, widened
from dryfit.reference.registry import Array, reference


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
