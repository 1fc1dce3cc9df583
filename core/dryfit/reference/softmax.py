"""Softmax."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.layers.softmax import Softmax
from dryfit.reference.precision import rounded, widened
from dryfit.reference.registry import Array, reference


@reference(Softmax)
def softmax(layer: Softmax, inputs: Sequence[Array]) -> list[Array]:
    """`exp(x - max)` divided by its sum, along one axis."""
    x = widened(inputs[0])
    if not x.size:
        return [inputs[0]]
    y = np.exp(x - x.max(axis=layer.axis, keepdims=True))
    return [rounded(y / y.sum(axis=layer.axis, keepdims=True), inputs[0].dtype)]
