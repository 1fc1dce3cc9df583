"""Indices that come from data: counted from the end where negative, and checked."""

from __future__ import annotations

import numpy as np

from dryfit.errors import ExecutionError
from dryfit.network.layer import Layer
from dryfit.reference.registry import Array


def from_start(layer: Layer, indices: Array, extent: int) -> Array:
    """The indices counted from the start of an axis of this extent, as int64.

    Raises:
        ExecutionError: an index is past either end.
    """
    indices = indices.astype(np.int64, copy=False)
    wrong = indices[(indices < -extent) | (indices >= extent)]
    if wrong.size:
        raise ExecutionError(
            "An index is out of range",
            where=f"layer {layer.name!r} ({layer.kind})",
            found=int(wrong.flat[0]),
            allowed=f"{-extent} to {extent - 1}" if extent else "none: the axis is empty",
        )
    return np.where(indices < 0, indices + extent, indices)


def grids(shape: tuple[int, ...], rank: int) -> list[Array]:
    """For each axis of `shape` its indices, shaped to broadcast over arrays of `rank` axes that start with them."""
    return [
        np.arange(extent).reshape([-1 if i == axis else 1 for i in range(rank)]) for axis, extent in enumerate(shape)
    ]
