"""Which processor a thread wakes up on.

Linux may wake a thread on the processor of whoever wakes it although others are idle: in a virtual machine an idle
processor counts as one that the host took away. Two threads then share one processor until the scheduler moves one,
milliseconds later. On two virtual processors (AMD EPYC, Linux 6.18) 39 of 40 threads woke so.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import sys
import threading
from collections.abc import Iterator

_AFFINITY = sys.platform == "linux" and hasattr(os, "sched_setaffinity")


class WakingElsewhere:
    """Keeps sleeping threads off the processor that their leader had last; working ones may use all of theirs.

    Where the system cannot say or change that (macOS, Windows), nothing is done.
    """

    def __init__(self) -> None:
        self._leader: int | None = None
        self._own = threading.local()

    def leads(self) -> None:
        """Note the processor of the calling thread, which is about to wake others."""
        if _AFFINITY:
            self._leader = _current_processor()

    @contextlib.contextmanager
    def works(self) -> Iterator[None]:
        """While the calling thread does what it was woken for; after it, it sleeps."""
        if usable := getattr(self._own, "usable", None):
            _use(usable)
        try:
            yield
        finally:
            if self._leader is not None:
                self._own.usable = os.sched_getaffinity(0)
                _use(self._own.usable - {self._leader})


def _use(processors: set[int]) -> None:
    """Let the calling thread run on these only; nothing is changed where it may use none of them."""
    if processors:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, processors)


def _current_processor() -> int | None:
    """The number of the processor that the calling thread runs on; None where the C library does not say."""
    try:
        number = int(_c_library().sched_getcpu())
    except AttributeError:
        return None
    return number if number >= 0 else None


@functools.cache
def _c_library() -> ctypes.CDLL:
    return ctypes.CDLL(None)
