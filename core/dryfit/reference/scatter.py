"""Scatter in its two modes, with ONNX's reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dryfit.network.layers.scatter import Scatter, ScatterMode, ScatterReduction
from dryfit.reference.indexing import from_start, grids
from dryfit.reference.registry import Array, compute_type, reference

_REDUCTIONS: dict[ScatterReduction, Callable[[Array, Any, Array], None]] = {
    ScatterReduction.ADD: np.add.at,
    ScatterReduction.MUL: np.multiply.at,
    ScatterReduction.MIN: np.minimum.at,
    ScatterReduction.MAX: np.maximum.at,
}


@reference(Scatter)
def scatter(layer: Scatter, inputs: Sequence[Array]) -> list[Array]:
    """A copy of the data with the updates; sums and products in FP32 for narrower types, rounded once at the end."""
    data, indices, updates = inputs
    if layer.reduction is ScatterReduction.NONE:
        output = data.copy()
        for places, values in _places(layer, data, indices, updates):
            output[places] = values
        return [output]
    wide = compute_type(data.dtype)
    output = data.astype(wide)
    for places, values in _places(layer, data, indices, updates):
        _REDUCTIONS[layer.reduction](output, places, values.astype(wide))
    return [output.astype(data.dtype)]


def _places(layer: Scatter, data: Array, indices: Array, updates: Array) -> list[tuple[tuple[Any, ...], Array]]:
    """(index of the output, updates that go there), to be done in this order."""
    if layer.mode is ScatterMode.ELEMENT:
        places: list[Any] = list(grids(indices.shape, indices.ndim))
        places[layer.axis] = from_start(layer, indices, data.shape[layer.axis])
        return [(tuple(places), updates)]
    width = indices.shape[-1]
    if not width:  # each update is a whole tensor
        return [((...,), update) for update in updates.reshape(-1, *data.shape)]
    return [(tuple(from_start(layer, indices[..., k], data.shape[k]) for k in range(width)), updates)]
