"""A tensor and the memory of one of its formats, taken apart so that each element is copied once, to its place."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from dryfit.network.data_types import DataType

if TYPE_CHECKING:
    from dryfit.target.formats import TensorFormat

Array = np.ndarray[Any, Any]
Index = tuple[Any, ...]
_ALL: Index = (...,)
"""A view of the whole, of an array without axes too."""


@attrs.frozen
class TensorPart:
    """A part of a tensor, and where it lies in memory: how to look at both so that equal indices are one element.

    Attributes:
        of_tensor: the index that cuts it out of the tensor.
        shape: of that, with the channels cut into vectors where they lie so.
        of_memory: the index that cuts it out of the memory, with all padding behind it.
        without_padding: the same without the padding along the spatial axes.
        axes: the order of the memory's axes, after either index, that is the tensor's.
    """

    of_tensor: Index
    shape: tuple[int, ...]
    of_memory: Index
    without_padding: Index
    axes: tuple[int, ...]


@attrs.frozen
class PackingPlan:
    """What packing and unpacking tensors of one shape and type do; no element is left out or in two parts.

    Attributes:
        extents: of the memory.
        parts: one, and where the last vector is not full of channels one for them.

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
        """Views (of the memory, of the tensor); together they show all of both.

        The memory's are longer where padding follows.
        """
        for part in self.parts:
            yield memory[part.of_memory].transpose(part.axes), tensor[part.of_tensor].reshape(part.shape)

    def pairs_to_unpack(self, tensor: Array, memory: Array) -> Iterator[tuple[Array, Array]]:
        """Views (of the memory, of the tensor) of the same shape; none shows padding."""
        for part in self.parts:
            there, here = memory[part.without_padding].transpose(part.axes), tensor[part.of_tensor]
            yield there, here.reshape(part.shape)


@functools.lru_cache(maxsize=1024)
def packing_plan(layout: TensorFormat, shape: tuple[int, ...], dtype: np.dtype[Any], family: str) -> PackingPlan:
    """How tensors of this shape lie in a format.

    Raises:
        ConfigError: the format is not defined for this shape and type.
        UnknownNameError: it is not the same for all platform families, and this is none of them.
    """
    extents = layout.array_shape(shape, DataType.from_numpy(dtype), family)
    axis, rank = len(shape) - 1 - layout.spatial_axes, len(shape)
    if layout.is_plain:
        return PackingPlan(extents, (TensorPart(_ALL, shape, _ALL, _ALL, tuple(range(rank))),))
    within = tuple(map(slice, shape[axis + 1 :]))
    before = (slice(None),) * axis
    if layout.has_vectors:
        return PackingPlan(extents, tuple(_vector_parts(shape, axis, extents[-1], before, within)))
    if layout.channels_last:
        axes = (*range(axis), rank - 1, *range(axis, rank - 1))
        return PackingPlan(extents, (TensorPart(_ALL, shape, _ALL, (*before, *within, slice(shape[axis])), axes),))
    return PackingPlan(extents, (TensorPart(_ALL, shape, _ALL, (*before, slice(None), *within), tuple(range(rank))),))


def _vector_parts(shape: tuple[int, ...], axis: int, width: int, before: Index, within: Index) -> Iterator[TensorPart]:
    """The vectors that are full of channels, and the channels of the last one where it is not."""
    rank = len(shape)
    whole, rest = divmod(shape[axis], width)
    if whole:
        # One axis cut into two is a view, whatever the strides.
        cut = (*shape[:axis], whole, width, *shape[axis + 1 :])
        axes = (*range(axis + 1), rank, *range(axis + 1, rank))
        vectors = (*before, slice(whole))
        yield TensorPart((*before, slice(whole * width)), cut, vectors, (*vectors, *within), axes)
    if rest:
        left = (*shape[:axis], rest, *shape[axis + 1 :])
        axes = (*range(axis), rank - 1, *range(axis, rank - 1))
        channels = (*before, slice(whole * width, None))
        yield TensorPart(channels, left, (*before, whole), (*before, whole, *within, slice(rest)), axes)
