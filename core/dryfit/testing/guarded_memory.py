"""Arrays with monitored surroundings, which detect writes outside a kernel's outputs and writes to its inputs.

Nearby, bytes of a known value reveal writes. Farther away, protected pages end the process on any access: third-party
code on such arrays should run in a separate process (see `own_process`).
"""

from __future__ import annotations

import ctypes
import enum
import functools
import math
import mmap
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.errors import ExecutionError

_PAGE = mmap.PAGESIZE
_NO_ACCESS, _READ, _READ_WRITE = 0, 1, 3
"""PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE: the same numbers on every system that has `mprotect`."""
_REGION_FILL = 0xA5


class GuardedSide(enum.Enum):
    """End of the memory that touches a guard page. The other end is up to a page away from its guard page."""

    END = "end"
    START = "start"


class GuardedPages:
    """Bytes between pages that can be neither read nor written.

    Args:
        size: number of bytes.
        side: end of the bytes that touches a guard page.
        alignment: alignment of the first byte. Some bytes may remain between the last byte and the next page;
            `is_intact_outside` reports whether they were written.
        slack: number of bytes after the memory that may be read but not written.
        guard_bytes: size of the protected pages on each side, at least one page.

    Attributes:
        memory: `uint8[size]`, filled with 0xA5. The pages live as long as it and its views do.
        region: location of the memory; does not keep it alive.

    Raises:
        ExecutionError: The system has no `mprotect`, or not enough memory.

    Example:
        >>> GuardedPages(6).memory.size
        6
    """

    def __init__(
        self,
        size: int,
        side: GuardedSide = GuardedSide.END,
        *,
        alignment: int = 1,
        slack: int = 0,
        guard_bytes: int = 0,
    ) -> None:
        protect = _mprotect()
        body = -(-(size + slack) // alignment) * alignment
        inner = max(-(-body // _PAGE), 1) * _PAGE
        guard = max(-(-guard_bytes // _PAGE), 1) * _PAGE
        mapping = mmap.mmap(-1, inner + 2 * guard)
        start = inner - body if side is GuardedSide.END else 0
        self.region = GuardedRegion(weakref.ref(mapping), guard, start, start + size)
        inside = self.region.inside(mapping)
        inside.fill(_REGION_FILL)
        # Not a slice: that of no bytes begins elsewhere.
        self.memory: Array = np.ndarray((size,), np.uint8, inside, start)
        self._address, self._inner = inside.ctypes.data, inner
        protect(self._address - guard, guard, _NO_ACCESS)
        protect(self._address + inner, guard, _NO_ACCESS)

    def array(self, shape: Sequence[int], dtype: np.dtype[Any] | type) -> Array:
        """Return the memory as a row-major array."""
        return self.memory.view(dtype).reshape(shape)

    def allow_writes(self, *, are_allowed: bool) -> None:
        """Allow or forbid writes: a forbidden write ends the process, as a write outside does."""
        _mprotect()(self._address, self._inner, _READ_WRITE if are_allowed else _READ)

    @property
    def is_intact_outside(self) -> bool:
        """Whether the bytes between the memory and the guard pages are unchanged."""
        return self.region.is_intact_outside


class GuardedRegion(NamedTuple):
    """Bytes between guard pages, which exist while another object holds them."""

    mapping: weakref.ref[mmap.mmap]
    guard: int
    start: int
    stop: int

    @property
    def is_intact_outside(self) -> bool:
        """Whether the bytes before the guard pages are unchanged; True if the memory no longer exists."""
        mapping = self.mapping()
        if mapping is None:
            return True
        inside = self.inside(mapping)
        return bool((inside[: self.start] == _REGION_FILL).all() and (inside[self.stop :] == _REGION_FILL).all())

    def inside(self, mapping: mmap.mmap) -> Array:
        """Return the bytes between the guard pages."""
        return np.frombuffer(mapping, np.uint8, len(mapping) - 2 * self.guard, self.guard)


def array_at_guard_page(
    shape: Sequence[int], dtype: np.dtype[Any] | type, side: GuardedSide = GuardedSide.END
) -> Array:
    """Return an uninitialized row-major array that ends directly before, or starts directly after, a guard page.

    Example:
        >>> array_at_guard_page((2, 3), np.float32).shape
        (2, 3)
    """
    return GuardedPages(math.prod(shape) * np.dtype(dtype).itemsize, side).array(shape, dtype)


def has_guard_pages() -> bool:
    """Return whether the system can protect pages, as Linux and macOS can."""
    try:
        _mprotect()
    except ExecutionError:
        return False
    return True


@functools.cache
def _mprotect() -> Callable[[int, int, int], None]:
    try:
        function = ctypes.CDLL(None, use_errno=True).mprotect
    except (AttributeError, OSError, TypeError):  # Windows: there is no library of that name, or no such function
        raise ExecutionError(
            "Guard pages are not supported on this system",
            found=sys.platform,
            allowed="Linux, macOS",
            remedy="Run these checks on one of these systems",
        ) from None
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

    def protect(address: int, size: int, access: int) -> None:
        if function(address, size, access):
            raise ExecutionError(
                "The system refuses to protect a page",
                found=f"error {ctypes.get_errno()}",
                remedy="Release arrays that are no longer needed, or raise vm.max_map_count",
            )

    return protect


Array = np.ndarray[Any, Any]

_GUARD_BYTES = 512
"""Before and after: a multiple of 64, so that alignment stays, and wider than what a vectorised loop overshoots by."""
_FORBIDDEN_BYTES = 1 << 24
"""Behind and before these, where the system can forbid access: wider than an index that is wrong by a plane or two."""
_FILL = 0xFF
"""Every float type reads it as NaN, and integers as -1: what is read from outside shows in the numbers."""


@frozen
class Arrangement:
    """Order and spacing of a tensor's axes in memory.

    Attributes:
        order: axes of the tensor, outermost first; () for the tensor's own order.
        is_spaced: whether foreign elements are placed between the tensor's elements, lines and planes.

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
        shape: shape of the array.
        dtype: type of its elements.
        arrangement: memory layout of the array.

    Attributes:
        array: a view of the memory whose first element is aligned to 64 bytes. Filled with values that no tensor has.
    """

    def __init__(self, shape: Sequence[int], dtype: np.dtype[Any], arrangement: Arrangement) -> None:
        self._shape, self._dtype, self._arrangement = tuple(shape), dtype, arrangement
        self._memory = _aligned(2 * _GUARD_BYTES + math.prod(self._extents()) * dtype.itemsize)
        self._memory.fill(_FILL)
        self.array = self._view(self._memory, dtype)

    def fill(self, values: Array | None = None) -> None:
        """Fill the array with values; without values, with values that no tensor has."""
        if values is None:
            self._memory.fill(_FILL)
        else:
            self.array[...] = values

    def contents(self) -> bytes:
        """Return the whole memory."""
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
    """Return a guarded array; row-major and dense without an arrangement."""
    return GuardedArray(shape, dtype, arrangement or Arrangement())
