"""Engines whose arrays, packed weights and workspaces lie between guard pages, each for itself."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from dryfit.errors import ExecutionError
from dryfit.target.memory import ALIGNMENT, watched_memory
from dryfit.testing.guarded_memory import GuardedPages, GuardedRegion, GuardedSide

Array = np.ndarray[Any, Any]


class Guards:
    """The memory that engines took since it began to be guarded.

    Args:
        side: which end of each array touches a guard page. At the end up to 63 bytes lie between them, since the first
            byte of an array is at a multiple of 64; what is written there is found by `problems`.
        limit: bytes of the largest array; more is refused as if there were no memory.
    """

    def __init__(self, side: GuardedSide = GuardedSide.END, limit: int = 1 << 28) -> None:
        self._side, self._limit = side, limit
        self._regions: list[GuardedRegion] = []

    def allocate(self, size: int, slack: int) -> Array:
        """Memory between guard pages, without the slack that kernels could otherwise read.

        Raises:
            ExecutionError: it is larger than the limit.
        """
        del slack
        if size > self._limit:
            raise ExecutionError("Not enough memory under guard pages", found=f"{size} bytes needed")
        pages = GuardedPages(size, self._side, alignment=ALIGNMENT)
        self._regions.append(pages.region)
        return pages.memory

    def problems(self) -> list[str]:
        """What was written beside arrays that still live, in words."""
        self._regions = [region for region in self._regions if region.mapping() is not None]
        broken = [region for region in self._regions if not region.is_intact_outside]
        return [f"something was written beside an array of {one.stop - one.start} bytes" for one in broken]


@contextlib.contextmanager
def guarded_engines(side: GuardedSide = GuardedSide.END, limit: int = 1 << 28) -> Iterator[Guards]:
    """Give every array, packed weight and workspace of engines in this process guard pages of its own.

    What touches a guard page ends the process: run engines that nobody vouches for in a process of their own.
    """
    guards = Guards(side, limit)
    with watched_memory(guards.allocate):
        yield guards
