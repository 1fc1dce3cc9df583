"""The schedule: the steps of an engine in order, native ones in runs that do not return to Python in between.

A team runs it: the threads, and the memory by which they find each other. The caller of a schedule leads; helpers
follow. A helper that has taken part in a run stays with the team for a while and watches for the next one in native
code, so that nobody has to be woken where runs follow each other closely. When none comes, or another team asks for
helpers, it leaves and sleeps.

Whoever follows may be late, and look at a run that has ended. So what it looks at belongs to the team, and is kept as
long as somebody follows; what a run computes with does not.

Helpers are Python threads that sleep until a schedule asks for help, are shared by all schedules of the process, and
spend their time in native code, without the interpreter's lock. A schedule never waits for one to come: it starts at
once, and who comes in time takes part.
"""

from __future__ import annotations

import atexit
import ctypes
import itertools
import os
import queue
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np

from dryfit.forking import is_lost, watch_forks
from dryfit.target.kernels import Array, Step
from dryfit.target.machine_code import usable_processors
from dryfit.target.waking import WakingElsewhere
from dryfit_cpu.codes import ARRIVALS, ENTRY_COUNTERS, ENTRY_ROWS, ENTRY_TABLE, LINE_BYTES, MEMBERS
from dryfit_cpu.compiler.native import NativeFunction, NativeStep, Work
from dryfit_cpu.side_by_side import make_ready

Job = Callable[[], None]


class HelperThreads:
    """Threads that take jobs from one queue.

    Attributes:
        generation: goes up when all threads are gone, with what they were doing: after a fork.
    """

    def __init__(self) -> None:
        self.generation = 0
        self._wanted = ctypes.c_int64()
        self._waking = WakingElsewhere()
        self.forget()

    def forget(self) -> None:
        """Begin anew, without threads."""
        self.generation += 1
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._wanted.value = 0

    @property
    def wanted_address(self) -> int:
        """Where the number of jobs stands that nobody has taken yet: a job that only waits ends when there are any."""
        return ctypes.addressof(self._wanted)

    def ask(self, job: Job, helpers: int) -> None:
        """Offer a job to so many helpers; it has to be one that may run late, or several times, or never."""
        if len(self._threads) < helpers:
            self._grow(helpers)
        self._waking.leads()
        self._offer(job, helpers)

    def stop(self) -> None:
        """Let the threads end, and wait for them."""
        with self._lock:
            threads, self._threads = self._threads, []
        self._offer(None, len(threads))
        for thread in threads:
            thread.join(timeout=1.0)

    def _offer(self, job: Job | None, times: int) -> None:
        with self._lock:
            for _ in range(times):
                self._jobs.put(job)
            self._wanted.value = self._jobs.qsize()

    def _take(self) -> Job | None:
        job = self._jobs.get()
        with self._lock:
            self._wanted.value = self._jobs.qsize()
        return job

    def _grow(self, helpers: int) -> None:
        with self._lock:
            while len(self._threads) < helpers:
                thread = threading.Thread(target=self._work, name=f"dryfit-{len(self._threads) + 1}", daemon=True)
                try:
                    thread.start()
                except RuntimeError:
                    # No thread can be had, or the interpreter is about to end: who asked works alone.
                    return
                self._threads.append(thread)

    def _work(self) -> None:
        while (job := self._take()) is not None:
            with self._waking.works():
                job()
            del job


HELPERS = HelperThreads()

atexit.register(HELPERS.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=HELPERS.forget)  # a child has none of its parent's threads


_LEAD = NativeFunction("dispatch", "lead")
_FOLLOW = NativeFunction("dispatch", "follow")
_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)

# Waking a sleeping thread takes 10 to 16 microseconds, as long as a layer of a small network. So helpers stay awake
# between runs that follow each other, and no longer: spinning takes a core away from whoever else needs it.
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
        self._patience = _PATIENCE if num_threads <= usable_processors() else _LITTLE_PATIENCE

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


def aligned_words(count: int) -> Array:
    """Zeroed int64 that begin at a line of the cache."""
    words = np.zeros(count + 8, dtype=np.int64)
    start = (-words.ctypes.data % LINE_BYTES) // 8
    return words[start : start + count]


Observe = Callable[[str, float], None]


def create_schedule(steps: Sequence[Step], num_threads: int = 1) -> HostSchedule:
    """The schedule of these steps for so many threads. Results are the same bits for any number."""
    return HostSchedule(steps, num_threads)


class HostSchedule:
    """Steps in order; one run at a time, several schedules at once."""

    def __init__(self, steps: Sequence[Step], num_threads: int) -> None:
        self.steps = tuple(steps)
        self.num_threads = max(1, num_threads)
        self._begin()
        watch_forks(self)

    def after_fork_in_child(self) -> None:
        """Begin anew in the child of a fork, where another thread was running the schedule."""
        if is_lost(self._lock):
            self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._team: Team | None = None
        self._runs: list[NativeRun | Step] = []
        work = [work for step in self.steps if isinstance(step, NativeStep) for work in step.work]
        if work:
            make_ready([_LEAD, _FOLLOW, *(one.native for one in work)])
        for is_native, group in itertools.groupby(self.steps, lambda step: isinstance(step, NativeStep)):
            steps = list(group)
            self._runs += [self._native_run(steps)] if is_native else steps
        self._observed: list[NativeRun | Step] | None = None

    def run(self, observe: Observe | None = None) -> None:
        """Run all steps; `observe(step name, seconds)` after each when given."""
        with self._lock:
            if observe is not None:
                self._run_observed(observe)
                return
            for step in self._runs:
                step.run()

    def _native_run(self, steps: Sequence[Step]) -> NativeRun:
        if self._team is None:
            self._team = Team(self.num_threads)
        return NativeRun(steps, self._team)

    def _run_observed(self, observe: Observe) -> None:
        if self._observed is None:
            self._observed = [self._native_run([step]) if isinstance(step, NativeStep) else step for step in self.steps]
        for step, run in zip(self.steps, self._observed, strict=True):
            start = time.perf_counter()
            run.run()
            observe(step.name, time.perf_counter() - start)


class NativeRun:
    """Consecutive native steps as one table for the dispatcher."""

    def __init__(self, steps: Sequence[Step], team: Team) -> None:
        self._steps = [step for step in steps if isinstance(step, NativeStep)]
        self._team = team
        self._entry = team.entry([work for step in self._steps for work in step.work])
        self._checks = [step.check for step in self._steps if step.check is not None]

    def run(self) -> None:
        """Run all work, and check what it found. The interpreter's lock is not held meanwhile."""
        self._team.run(self._entry)
        for check in self._checks:
            check()
