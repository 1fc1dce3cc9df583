"""Copy plans between a tensor and the memory of its format, in which each element is copied once."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType

if TYPE_CHECKING:
    from dryfit.target.formats import TensorFormat

Array = np.ndarray[Any, Any]
Index = tuple[Any, ...]
_ALL: Index = (...,)
"""A view of the whole, of an array without axes too."""


@frozen
class TensorPart:
    """A part of a tensor and its position in memory, with views that give equal elements equal indices.

    Attributes:
        of_tensor: index of the part in the tensor.
        shape: its shape, with the channels split into vectors if the format does so.
        of_memory: index of the part in the memory, including all padding after it.
        without_padding: the same without the padding along the spatial axes.
        axes: permutation of the memory's axes, after either index, that gives the tensor's axes.
    """

    of_tensor: Index
    shape: tuple[int, ...]
    of_memory: Index
    without_padding: Index
    axes: tuple[int, ...]


@frozen
class PackingPlan:
    """Copies that pack and unpack tensors of one shape and type; every element is in exactly one part.

    Attributes:
        extents: extents of the memory.
        parts: one part, and a second part if the last vector of channels is incomplete.

    Example:
        >>> from dryfit.target.formats import TensorFormat
        >>> plan = packing_plan(TensorFormat("CHW2", channels_vector=2), (3, 1, 2), np.dtype(np.float32), "")
        >>> tensor, memory = np.arange(6.0, dtype=np.float32).reshape(3, 1, 2), np.zeros(plan.extents, np.float32)
        >>> [(there.shape, here.shape) for there, here in plan.pairs_to_pack(tensor, memory)]
        [((1, 2, 1, 2), (1, 2, 1, 2)), ((2, 1, 2), (1, 1, 2))]
    """

    extents: tuple[int, ...]
    parts: tuple[TensorPart, ...]

    def pairs_to_pack(self, tensor: Array, memory: Array) -> Iterator[tuple[Array, Array]]:
        """Return pairs of views (of the memory, of the tensor) that together cover both.

        The views of the memory are longer if padding follows.
        """
        for part in self.parts:
            yield memory[part.of_memory].transpose(part.axes), tensor[part.of_tensor].reshape(part.shape)

    def pairs_to_unpack(self, tensor: Array, memory: Array) -> Iterator[tuple[Array, Array]]:
        """Return pairs of views (of the memory, of the tensor) with equal shapes, without padding."""
        for part in self.parts:
            there, here = memory[part.without_padding].transpose(part.axes), tensor[part.of_tensor]
            yield there, here.reshape(part.shape)


@functools.lru_cache(maxsize=1024)
def packing_plan(layout: TensorFormat, shape: tuple[int, ...], dtype: np.dtype[Any], family: str) -> PackingPlan:
    """Return the packing plan of a tensor shape in a format.

    Raises:
        ConfigError: The format is not defined for this shape and type.
        UnknownNameError: The format differs between platform families, and this family is not one of them.
    """
    extents = layout.array_shape(shape, DataType.from_numpy(dtype), family)
    axis, rank = len(shape) - 1 - layout.spatial_axes, len(shape)
    if layout.is_plain:
        return PackingPlan(extents, (TensorPart(_ALL, shape, _ALL, _ALL, tuple(range(rank))),))
    within = tuple(map(slice, shape[axis + 1 :]))
    before = (slice(None),) * axis
    if layout.has_vectors:
        parts = _vector_parts(shape, axis, extents[-1], before, within, rows_first=layout.rows_first)
        return PackingPlan(extents, tuple(parts))
    if layout.channels_last:
        axes = (*range(axis), rank - 1, *range(axis, rank - 1))
        return PackingPlan(extents, (TensorPart(_ALL, shape, _ALL, (*before, *within, slice(shape[axis])), axes),))
    return PackingPlan(extents, (TensorPart(_ALL, shape, _ALL, (*before, slice(None), *within), tuple(range(rank))),))


def _vector_parts(
    shape: tuple[int, ...], axis: int, width: int, before: Index, within: Index, *, rows_first: bool
) -> Iterator[TensorPart]:
    """The vectors that are full of channels, and the channels of the last one where it is not."""
    rank = len(shape)
    whole, rest = divmod(shape[axis], width)
    # With the rows first, the axis of the vectors stands before that of the columns, which is the last but one.
    rows: Index = (slice(None),) * (rank - axis - 2) if rows_first else ()
    inner, columns = (within[:-1], within[-1:]) if rows_first else ((), within)
    of_vectors = axis + len(rows)
    if whole:
        # One axis cut into two is a view, whatever the strides.
        cut = (*shape[:axis], whole, width, *shape[axis + 1 :])
        spatial = [one for one in range(axis, rank) if one != of_vectors]
        axes = (*range(axis), of_vectors, rank, *spatial)
        vectors = (*before, *rows, slice(whole))
        yield TensorPart((*before, slice(whole * width)), cut, vectors, (*before, *inner, slice(whole), *columns), axes)
    if rest:
        left = (*shape[:axis], rest, *shape[axis + 1 :])
        axes = (*range(axis), rank - 1, *range(axis, rank - 1))
        channels = (*before, slice(whole * width, None))
        last = (*before, *inner, whole, *columns, slice(rest))
        yield TensorPart(channels, left, (*before, *rows, whole), last, axes)
