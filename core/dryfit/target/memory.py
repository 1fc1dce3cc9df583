"""Allocation of all memory of engines and kernels, in one place so that tests can add guard pages."""

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
    """Return `size` uninitialized bytes, aligned to 64 bytes, with slack after them.

    Raises:
        ExecutionError: The machine does not have enough memory.
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
    """Return a read-only array on the same memory, or on a copy while memory is watched."""
    held = array.view()
    if _watching:
        held = _watching[-1](array.nbytes, 0).view(array.dtype).reshape(array.shape)
        held[...] = array
    held.flags.writeable = False
    return held


def is_watched() -> bool:
    """Return whether each array must have its own memory, because a test watches it."""
    return bool(_watching)


@contextlib.contextmanager
def watched_memory(allocate: Allocate) -> Iterator[None]:
    """Allocate memory with a function while the context is open, in all threads of the process.

    Args:
        allocate: called for each array, each workspace, and each array of packed weights.
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
