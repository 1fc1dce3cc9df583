"""A tensor and the memory of one of its formats, taken apart so that each element is copied once, to its place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np

Array = np.ndarray[Any, Any]


@attrs.frozen(eq=False)
class TensorParts:
    """A tensor beside its memory.

    Attributes:
        tensor: `[*batch, C, *spatial]`, any strides.
        memory: `[*batch, ceil(C / width), *lines, width]`, where lines are at least as long as the spatial extents.
        axis: of the channels.

    Example:
        >>> tensor = np.arange(1, 7).reshape(3, 1, 2)
        >>> parts = TensorParts(tensor, np.full((2, 1, 3, 2), -1), axis=0)
        >>> parts.clear_padding()
        >>> for in_memory, in_tensor in parts.pairs():
        ...     in_memory[...] = in_tensor
        >>> parts.memory.reshape(2, 3, 2).tolist()
        [[[1, 3], [2, 4], [0, 0]], [[5, 0], [6, 0], [0, 0]]]
    """

    tensor: Array
    memory: Array
    axis: int

    @property
    def _whole_and_rest(self) -> tuple[int, int]:
        """How many vectors are full of channels, and how many channels are in the last one otherwise."""
        channels: int = self.tensor.shape[self.axis]
        width: int = self.memory.shape[-1]
        return divmod(channels, width)

    def pairs(self) -> Iterator[tuple[Array, Array]]:
        """Views (of the memory, of the tensor) of the same shape, in which the same elements stand at the same place.

        Together they hold each element once: one pair for the vectors that are full, one for the channels that are
        left. No view shows padding.
        """
        (whole, rest), width, axis = self._whole_and_rest, self.memory.shape[-1], self.axis
        batch, spatial = self.tensor.shape[:axis], self.tensor.shape[axis + 1 :]
        before: tuple[Any, ...] = (slice(None),) * axis
        within: tuple[Any, ...] = tuple(map(slice, spatial))
        if whole:
            vectors = self.memory[(*before, slice(whole), *within)]
            # One axis cut into two is a view, whatever the strides.
            channels = self.tensor[(*before, slice(whole * width))].reshape(*batch, whole, width, *spatial)
            yield np.moveaxis(vectors, -1, axis + 1), channels
        if rest:
            vector = self.memory[(*before, whole, *within, slice(rest))]
            yield np.moveaxis(vector, -1, axis), self.tensor[(*before, slice(whole * width, None))]

    def clear_padding(self) -> None:
        """Set everything to zero that is not the tensor, and of the tensor the channels that fill no vector."""
        whole, rest = self._whole_and_rest
        before: tuple[Any, ...] = (slice(None),) * self.axis
        if rest:
            # Channels are written after it: one run of zeros is quicker than many short ones between them.
            self.memory[(*before, whole)] = 0
        for offset, extent in enumerate(self.tensor.shape[self.axis + 1 :], start=1):
            lines: tuple[slice, ...] = (slice(None),) * (self.axis + offset)
            if extent < self.memory.shape[self.axis + offset]:
                self.memory[(*lines, slice(extent, None))] = 0
