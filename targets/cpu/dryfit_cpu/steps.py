"""Steps of native work, which the dispatcher runs. Any other step is a Python function to it."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

Array = np.ndarray[Any, Any]
FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
"""A native function: descriptor's address, chunk, chunks."""


@attrs.frozen(eq=False)
class Work:
    """One call of a native function, cut into chunks that any thread may run in any order.

    Attributes:
        function: address of `void (int64 *descriptor, int64 chunk, int64 chunks)`.
        descriptor: int64, the function's arguments.
        chunks: how many parts it is cut into. The result does not depend on it, nor on who runs which.
    """

    function: int
    descriptor: Array
    chunks: int


@attrs.frozen(eq=False)
class NativeStep:
    """A step of native work only: consecutive ones run in the dispatcher without returning to Python.

    Attributes:
        name: the group's name.
        work: in order; each starts when the one before is complete.
        keeps: arrays and tables that the descriptors point into.
    """

    name: str
    work: Sequence[Work]
    keeps: Sequence[Any] = ()

    @classmethod
    def joined(cls, name: str, steps: Sequence[NativeStep]) -> NativeStep:
        """Several steps as one, in their order."""
        return cls(name, [work for step in steps for work in step.work], steps)

    def run(self) -> None:
        """Run all work on the calling thread."""
        for work in self.work:
            call = FUNCTION(work.function)
            for chunk in range(work.chunks):
                call(work.descriptor.ctypes.data, chunk, work.chunks)
