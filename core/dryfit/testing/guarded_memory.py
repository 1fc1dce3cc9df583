"""Arrays whose surroundings are watched: what a kernel writes beside its output, or into its input, is found.

Close by, bytes of a known value show what was written. Far away, pages that nobody may touch end the process: whoever
runs a stranger's code on such arrays does that in a process of its own (see `own_process`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from dryfit.testing.guard_pages import GuardedPages, has_guard_pages

Array = np.ndarray[Any, Any]

_GUARD_BYTES = 512
"""Before and after: a multiple of 64, so that alignment stays, and wider than what a vectorised loop overshoots by."""
_FORBIDDEN_BYTES = 1 << 24
"""Behind and before these, where the system can forbid access: wider than an index that is wrong by a plane or two."""
_FILL = 0xFF
"""Every float type reads it as NaN, and integers as -1: what is read from outside shows in the numbers."""


@attrs.frozen
class Arrangement:
    """In which order a tensor's axes lie in memory, and how far apart.

    Attributes:
        order: axes of the tensor, outermost first; () for the tensor's own order.
        is_spaced: whether elements that are not the tensor's lie between its elements, lines and planes.

    Example:
        >>> guarded_array((1, 2, 3, 4), np.dtype("float32"), Arrangement((0, 2, 3, 1))).array.strides
        (96, 4, 32, 8)
    """

    order: tuple[int, ...] = ()
    is_spaced: bool = False

    def __str__(self) -> str:
        axes = f"axes {self.order} in memory" if self.order else "row-major"
        return f"{axes}{', spaced' if self.is_spaced else ''}"


class GuardedArray:
    """An array within a larger memory.

    Args:
        shape: of the array.
        dtype: of its elements.
        arrangement: how it lies.

    Attributes:
        array: a view of the memory; its first element is at a multiple of 64 bytes. Filled with what no tensor has.
    """

    def __init__(self, shape: Sequence[int], dtype: np.dtype[Any], arrangement: Arrangement) -> None:
        self._shape, self._dtype, self._arrangement = tuple(shape), dtype, arrangement
        self._memory = _aligned(2 * _GUARD_BYTES + math.prod(self._extents()) * dtype.itemsize)
        self._memory.fill(_FILL)
        self.array = self._view(self._memory, dtype)

    def fill(self, values: Array | None = None) -> None:
        """Give the array values; without any, what no tensor has."""
        if values is None:
            self._memory.fill(_FILL)
        else:
            self.array[...] = values

    def contents(self) -> bytes:
        """All of the memory."""
        return self._memory.tobytes()

    @property
    def is_intact_outside(self) -> bool:
        """Whether nothing but the array was written."""
        outside, bits = self._memory.copy(), np.dtype(f"u{self._dtype.itemsize}")
        self._view(outside, bits)[...] = np.iinfo(bits).max
        return bool((outside == _FILL).all())

    def _extents(self) -> tuple[int, ...]:
        order = self._arrangement.order or range(len(self._shape))
        extents = [self._shape[axis] for axis in order]
        return (*(extent + 1 for extent in extents), 2) if self._arrangement.is_spaced else tuple(extents)

    def _view(self, memory: Array, dtype: np.dtype[Any]) -> Array:
        elements = memory[_GUARD_BYTES : memory.size - _GUARD_BYTES].view(dtype).reshape(self._extents())
        if self._arrangement.is_spaced:
            inside: tuple[Any, ...] = (*(slice(extent - 1) for extent in elements.shape[:-1]), 0, ...)
            elements = elements[inside]
        return elements.transpose(np.argsort(self._arrangement.order)) if self._arrangement.order else elements


def _aligned(size: int) -> Array:
    """Bytes that begin at a multiple of 64."""
    if has_guard_pages():
        return GuardedPages(-(-size // 64) * 64, alignment=64, guard_bytes=_FORBIDDEN_BYTES).memory[:size]
    raw = np.empty(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size]


def guarded_array(shape: Sequence[int], dtype: np.dtype[Any], arrangement: Arrangement | None = None) -> GuardedArray:
    """A guarded array; row-major and dense without an arrangement."""
    return GuardedArray(shape, dtype, arrangement or Arrangement())
