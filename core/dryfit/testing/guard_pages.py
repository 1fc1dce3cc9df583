"""Memory between two pages that nobody may touch: a kernel that reads or writes outside ends its process at once.

`guarded_memory` finds what is written near an array. Guard pages also find what is read, and what lies far outside, but
the process dies of it (SIGSEGV), so that whoever uses them runs the code under test in a process of its own.
"""

from __future__ import annotations

import ctypes
import enum
import functools
import math
import mmap
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dryfit.errors import ExecutionError

Array = np.ndarray[Any, Any]

_PAGE = mmap.PAGESIZE
_NO_ACCESS, _READ, _READ_WRITE = 0, 1, 3
"""PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE: the same numbers on every system that has `mprotect`."""
_FILL = 0xA5


class Side(enum.Enum):
    """Which end of the memory touches a guard page. The other end is up to a page away from its own."""

    END = "end"
    START = "start"


class GuardedPages:
    """Bytes with pages before and behind them that can neither be read nor written.

    Args:
        size: bytes.
        side: which end of the bytes lies directly at a guard page.
        alignment: the first byte is at a multiple of this, so that some bytes may lie between the last one and the page
            behind; `is_intact_outside` says whether they were written.
        slack: bytes behind the memory that may be read, and not written.
        guard_bytes: how far the forbidden pages reach on each side: at least one page.

    Attributes:
        memory: `uint8[size]`, filled with 0xA5. The pages live as long as it and its views do.
        region: where it lies; holds nothing alive.

    Raises:
        ExecutionError: the system has no `mprotect`, or not enough memory.

    Example:
        >>> GuardedPages(6).memory.size
        6
    """

    def __init__(
        self, size: int, side: Side = Side.END, *, alignment: int = 1, slack: int = 0, guard_bytes: int = 0
    ) -> None:
        protect = _mprotect()
        body = -(-(size + slack) // alignment) * alignment
        inner = max(-(-body // _PAGE), 1) * _PAGE
        guard = max(-(-guard_bytes // _PAGE), 1) * _PAGE
        mapping = mmap.mmap(-1, inner + 2 * guard)
        start = inner - body if side is Side.END else 0
        self.region = GuardedRegion(weakref.ref(mapping), guard, start, start + size)
        inside = self.region.inside(mapping)
        inside.fill(_FILL)
        # Not a slice: that of no bytes begins elsewhere.
        self.memory: Array = np.ndarray((size,), np.uint8, inside, start)
        self._address, self._inner = inside.ctypes.data, inner
        protect(self._address - guard, guard, _NO_ACCESS)
        protect(self._address + inner, guard, _NO_ACCESS)

    def array(self, shape: Sequence[int], dtype: np.dtype[Any] | type) -> Array:
        """The memory as a row-major array."""
        return self.memory.view(dtype).reshape(shape)

    def allow_writes(self, *, are_allowed: bool) -> None:
        """Allow writes or forbid them: a write that is forbidden ends the process as one outside does."""
        _mprotect()(self._address, self._inner, _READ_WRITE if are_allowed else _READ)

    @property
    def is_intact_outside(self) -> bool:
        """Whether the bytes between the memory and the guard pages are as they were."""
        return self.region.is_intact_outside


class GuardedRegion(NamedTuple):
    """Bytes between guard pages, for as long as somebody else holds them."""

    mapping: weakref.ref[mmap.mmap]
    guard: int
    start: int
    stop: int

    @property
    def is_intact_outside(self) -> bool:
        """Whether the bytes between the memory and the guard pages are as they were; True where it is gone."""
        mapping = self.mapping()
        if mapping is None:
            return True
        inside = self.inside(mapping)
        return bool((inside[: self.start] == _FILL).all() and (inside[self.stop :] == _FILL).all())

    def inside(self, mapping: mmap.mmap) -> Array:
        """The bytes between the guard pages."""
        return np.frombuffer(mapping, np.uint8, len(mapping) - 2 * self.guard, self.guard)


def array_at_guard_page(shape: Sequence[int], dtype: np.dtype[Any] | type, side: Side = Side.END) -> Array:
    """An uninitialized row-major array that ends directly before a guard page, or starts directly after one.

    Example:
        >>> array_at_guard_page((2, 3), np.float32).shape
        (2, 3)
    """
    return GuardedPages(math.prod(shape) * np.dtype(dtype).itemsize, side).array(shape, dtype)


def has_guard_pages() -> bool:
    """Whether the system can protect pages: Linux and macOS can."""
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
        raise ExecutionError("Guard pages are not supported on this system", allowed="Linux, macOS") from None
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

    def protect(address: int, size: int, access: int) -> None:
        if function(address, size, access):
            raise ExecutionError(
                "The system refuses to protect a page",
                found=f"error {ctypes.get_errno()}",
                remedy="Release arrays that are no longer needed, or raise vm.max_map_count",
            )

    return protect
