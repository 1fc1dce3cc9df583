"""Shuffle: views of the input wherever its layout in memory allows one."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.network.layers.shuffle import Shuffle
from dryfit.reference.registry import Array, reference


@reference(Shuffle)
def shuffle(layer: Shuffle, inputs: Sequence[Array]) -> list[Array]:
    """Transpose, reshape, transpose."""
    x = inputs[0]
    if layer.first_transpose:
        x = x.transpose(layer.first_transpose)
    dims = layer.reshape_dims
    if len(inputs) > 1:
        dims = tuple(int(dim) for dim in inputs[1])
    if dims is not None:
        x = x.reshape(layer.reshaped(x.shape, dims))
    return [x.transpose(layer.second_transpose) if layer.second_transpose else x]
