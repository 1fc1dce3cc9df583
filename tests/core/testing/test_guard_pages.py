"""Arrays between guard pages: what touches the pages dies, and nothing else does."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
from collections.abc import Callable

import numpy as np
import pytest

from dryfit.testing.guarded_memory import GuardedPages, GuardedSide, array_at_guard_page, has_guard_pages

pytestmark = pytest.mark.skipif(not has_guard_pages(), reason="the system cannot protect pages")


def signal_of(work: Callable[[], object]) -> int:
    """The signal that ends a child process that does the work; 0 for none."""
    child = os.fork()
    if not child:
        faulthandler.disable()
        try:
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


@pytest.mark.parametrize("size", [0, 1, 6, 64, 4095, 4096, 4097, 20_000])
@pytest.mark.parametrize("side", GuardedSide)
def test_the_first_byte_outside_cannot_be_read(size: int, side: GuardedSide) -> None:
    pages = GuardedPages(size, side)
    outside = pages.memory.ctypes.data + (size if side is GuardedSide.END else -1)
    assert signal_of(lambda: ctypes.string_at(outside, 1)) == signal.SIGSEGV
    assert signal_of(lambda: pages.memory.fill(7)) == 0


def test_the_start_is_aligned_and_the_slack_can_be_read() -> None:
    pages = GuardedPages(100, alignment=64, slack=64)
    address = pages.memory.ctypes.data
    assert address % 64 == 0
    assert signal_of(lambda: ctypes.string_at(address, 164)) == 0
    assert signal_of(lambda: ctypes.string_at(address, 193)) == signal.SIGSEGV


def test_a_write_into_the_slack_is_found() -> None:
    pages = GuardedPages(100, alignment=64)
    assert pages.is_intact_outside
    ctypes.memset(pages.memory.ctypes.data + 100, 0, 1)
    assert not pages.is_intact_outside


def test_a_write_that_is_forbidden_ends_the_process() -> None:
    pages = GuardedPages(10)
    address = pages.memory.ctypes.data
    pages.allow_writes(are_allowed=False)
    assert signal_of(lambda: ctypes.memset(address, 0, 1)) == signal.SIGSEGV
    pages.allow_writes(are_allowed=True)
    assert signal_of(lambda: ctypes.memset(address, 0, 1)) == 0


def test_an_array_outlives_what_made_it() -> None:
    arrays = [array_at_guard_page((3, 5), np.float32, side) for side in GuardedSide]
    for array in arrays:
        array[...] = 1
    assert all(array.sum() == 15 for array in arrays)
