"""One-hot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.layers.one_hot import OneHot
from dryfit.reference.registry import Array, reference


@reference(OneHot)
def one_hot(layer: OneHot, inputs: Sequence[Array]) -> list[Array]:
    """`on` where the new axis's index is the given one, `off` elsewhere."""
    indices, (off, on), depth = inputs[0].astype(np.int64), inputs[1], int(inputs[2].reshape(()))
    indices = np.where(indices < 0, indices + depth, indices)
    hits = indices[..., None] == np.arange(depth)
    return [np.moveaxis(np.where(hits, on, off).astype(inputs[1].dtype), -1, layer.axis)]
