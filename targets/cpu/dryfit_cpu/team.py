"""A team: the threads that run a schedule together, and the memory by which they find each other.

The caller of a schedule leads; helpers follow. A helper that has taken part in a run stays with the team for a while
and watches for the next one in native code, so that nobody has to be woken where runs follow each other closely. When
none comes, or another team asks for helpers, it leaves and sleeps.

Whoever follows may be late, and look at a run that has ended. So what it looks at belongs to the team, and is kept as
long as somebody follows; what a run computes with does not.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence

import numpy as np

from dryfit.target.kernels import Array
from dryfit_cpu.codes import ARRIVALS, ENTRY_COUNTERS, ENTRY_ROWS, ENTRY_TABLE, LINE_BYTES, MEMBERS
from dryfit_cpu.compiler.native import NativeFunction
from dryfit_cpu.steps import Work
from dryfit_cpu.threads import HELPERS, HelperThreads

_LEAD = NativeFunction("dispatch", "lead")
_FOLLOW = NativeFunction("dispatch", "follow")
_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)

_PATIENCE, _LITTLE_PATIENCE = 15000, 1000
"""Turns for which a helper watches for the next run: one to two milliseconds of processor time, measured on an AMD EPYC
(26 nanoseconds a turn that keeps the core, 0.3 microseconds one that offers it); and where there are more threads than
processors, about 50 microseconds. Our choice, as long as other runtimes do."""


class Team:
    """One leader at a time, and up to `num_threads - 1` helpers."""

    def __init__(self, num_threads: int, helpers: HelperThreads = HELPERS) -> None:
        self.num_threads = num_threads
        self._helpers = helpers
        self._memory = aligned_words((MEMBERS + LINE_BYTES) // 8)
        self._members = ctypes.c_int64.from_address(self._memory.ctypes.data + MEMBERS)
        self._kept: list[Array] = []
        self._generation = helpers.generation
        self._work = _FOLLOW.work(1, team=self._memory.ctypes.data, wanted=helpers.wanted_address)
        self._lead, self._follow = _FUNCTION(_LEAD.address), _FUNCTION(_FOLLOW.address)
        self._descriptor = self._work.descriptor.ctypes.data
        self._patience = _PATIENCE if num_threads <= processors() else _LITTLE_PATIENCE

    def entry(self, work: Sequence[Work]) -> int:
        """The address of an entry for this work, in order, which stays as long as the team."""
        table = np.array([[one.function, one.descriptor.ctypes.data, one.chunks] for one in work], np.int64)
        counters = aligned_words(len(work) * (self.num_threads + 1) * LINE_BYTES // 8)
        entry = aligned_words((ARRIVALS + LINE_BYTES) // 8)
        for place, value in (
            (ENTRY_TABLE, table.ctypes.data),
            (ENTRY_ROWS, len(work)),
            (ENTRY_COUNTERS, counters.ctypes.data),
        ):
            entry[place // 8] = value
        self._kept += [table, counters, entry]
        return int(entry.ctypes.data)

    def run(self, entry: int) -> None:
        """Run all work of an entry; not from two threads at a time.

        Helpers that are not here yet are asked for, and nobody waits for them to come. The interpreter's lock is not
        held meanwhile.
        """
        if self._generation != self._helpers.generation:
            self._members.value, self._generation = 0, self._helpers.generation
        missing = self.num_threads - 1 - self._members.value
        if missing > 0:
            self._helpers.ask(self.follow, missing)
        self._lead(self._descriptor, entry, self.num_threads)

    def follow(self) -> None:
        """Take part in the team's runs, as long as there are any."""
        self._follow(self._descriptor, self._patience, self.num_threads)


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def aligned_words(count: int) -> Array:
    """Zeroed int64 that begin at a line of the cache."""
    words = np.zeros(count + 8, dtype=np.int64)
    start = (-words.ctypes.data % LINE_BYTES) // 8
    return words[start : start + count]
