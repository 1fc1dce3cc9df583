"""Where the memory of engines and kernels comes from: the one place, so that tests can put guard pages around it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dryfit.errors import ExecutionError

Array = np.ndarray[Any, Any]

ALIGNMENT = 64
"""Buffers start at a multiple of this: a cache line, and the widest vector register."""
SLACK = 64
"""Bytes after an array that a kernel may read, and not write."""
LARGEST_ALLOCATION = 2**46
"""Bytes that no machine has today; numpy would fail in other ways on more."""

Allocate = Callable[[int, int], Array]
"""(bytes, bytes behind them that may be read) to `uint8[bytes]` at a multiple of 64."""

_watching: list[Allocate] = []


def aligned_bytes(size: int) -> Array:
    """Return `size` uninitialized bytes at a multiple of 64, with slack after them.

    Raises:
        ExecutionError: the machine does not have so much.
    """
    try:
        if size > LARGEST_ALLOCATION:
            raise MemoryError  # noqa: TRY301  one message for both
        return (_watching[-1] if _watching else _allocate)(size, SLACK)
    except MemoryError:
        raise ExecutionError(
            "Not enough memory to run the engine with these input shapes",
            found=f"{size} bytes needed",
            remedy="Run smaller batches, or fewer contexts at a time",
        ) from None


def read_only(array: Array) -> Array:
    """An array that cannot be written: the same memory, or while memory is watched a copy in memory of that kind."""
    held = array.view()
    if _watching:
        held = _watching[-1](array.nbytes, 0).view(array.dtype).reshape(array.shape)
        held[...] = array
    held.flags.writeable = False
    return held


def is_watched() -> bool:
    """Return whether each array has to have memory of its own, because a test watches it."""
    return bool(_watching)


@contextlib.contextmanager
def watched_memory(allocate: Allocate) -> Iterator[None]:
    """Take memory from a function for as long as the context is open: all of the process, in every thread.

    Args:
        allocate: is asked for each array, each workspace, and each array of packed weights.
    """
    _watching.append(allocate)
    try:
        yield
    finally:
        _watching.remove(allocate)


def _allocate(size: int, slack: int) -> Array:
    memory = np.empty(size + ALIGNMENT + slack, dtype=np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size]
