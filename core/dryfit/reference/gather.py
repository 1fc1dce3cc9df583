"""Gather in its three modes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.layers.gather import Gather, GatherMode
from dryfit.reference.indexing import from_start, grids
from dryfit.reference.registry import Array, reference


@reference(Gather)
def gather(layer: Gather, inputs: Sequence[Array]) -> list[Array]:
    """The picked elements; the data's bits are copied."""
    data, indices = inputs
    modes = {GatherMode.DEFAULT: _slices, GatherMode.ELEMENT: _elements, GatherMode.ND: _tensors}
    return [modes[layer.mode](layer, data, indices)]


def _slices(layer: Gather, data: Array, indices: Array) -> Array:
    indices = from_start(layer, indices, data.shape[layer.axis])
    shared = layer.num_elementwise_dims
    if not shared:
        return np.take(data, indices, axis=layer.axis)
    front = np.moveaxis(data, layer.axis, shared)
    picked = front[(*grids(data.shape[:shared], indices.ndim), indices)]
    # Now: shared axes, the other axes of the indices, the data's axes before `axis`, those after it.
    between = range(indices.ndim, indices.ndim + layer.axis - shared)
    rest = (axis for axis in range(shared, picked.ndim) if axis not in between)
    return picked.transpose(*range(shared), *between, *rest)  # type: ignore[no-any-return]


def _elements(layer: Gather, data: Array, indices: Array) -> Array:
    indices = from_start(layer, indices, data.shape[layer.axis])
    reached = tuple(slice(None) if axis == layer.axis else slice(count) for axis, count in enumerate(indices.shape))
    return np.take_along_axis(data[reached], indices, axis=layer.axis)


def _tensors(layer: Gather, data: Array, indices: Array) -> Array:
    shared, width = layer.num_elementwise_dims, indices.shape[-1]
    if not shared and not width:
        return np.broadcast_to(data, (*indices.shape[:-1], *data.shape))
    vectors = [from_start(layer, indices[..., k], data.shape[shared + k]) for k in range(width)]
    batch = grids(data.shape[:shared], indices.ndim - 1)
    return data[tuple(np.broadcast_arrays(*batch, *vectors, np.empty(indices.shape[:-1], bool))[:-1])]  # type: ignore[no-any-return]
