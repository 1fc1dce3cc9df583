"""The schedule: the steps of an engine in order, native ones in runs that do not return to Python in between."""

from __future__ import annotations

import ctypes
import itertools
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np

from dryfit.target.kernels import Array, Step
from dryfit_cpu.compiler.native import NativeFunction
from dryfit_cpu.steps import NativeStep
from dryfit_cpu.threads import HELPERS

Observe = Callable[[str, float], None]

_RUN = NativeFunction("dispatch", "run")
_PREPARE = NativeFunction("dispatch", "prepare")
_COUNTER_WORDS = 16
_GENERATIONS = 2**31
_SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


def create_schedule(steps: Sequence[Step], num_threads: int = 1) -> HostSchedule:
    """The schedule of these steps for so many threads. Results are the same bits for any number."""
    return HostSchedule(steps, num_threads)


class HostSchedule:
    """Steps in order; one run at a time, several schedules at once."""

    def __init__(self, steps: Sequence[Step], num_threads: int) -> None:
        self.steps = tuple(steps)
        self.num_threads = max(1, num_threads)
        self._lock = threading.Lock()
        self._runs: list[NativeRun | Step] = []
        for is_native, group in itertools.groupby(self.steps, lambda step: isinstance(step, NativeStep)):
            steps = list(group)
            self._runs += [NativeRun(steps, self.num_threads)] if is_native else steps
        self._observed: list[NativeRun | Step] | None = None

    def run(self, observe: Observe | None = None) -> None:
        """Run all steps; `observe(step name, seconds)` after each when given."""
        with self._lock:
            if observe is not None:
                self._run_observed(observe)
                return
            for step in self._runs:
                step.run()

    def _run_observed(self, observe: Observe) -> None:
        if self._observed is None:
            self._observed = [
                NativeRun([step], self.num_threads) if isinstance(step, NativeStep) else step for step in self.steps
            ]
        for step, run in zip(self.steps, self._observed, strict=True):
            start = time.perf_counter()
            run.run()
            observe(step.name, time.perf_counter() - start)


class NativeRun:
    """Consecutive native steps as one table for the dispatcher."""

    def __init__(self, steps: Sequence[Step], num_threads: int) -> None:
        self._steps = [step for step in steps if isinstance(step, NativeStep)]
        work = [work for step in self._steps for work in step.work]
        self._table = np.array([[w.function, w.descriptor.ctypes.data, w.chunks] for w in work], dtype=np.int64)
        self._num_threads = num_threads
        self._generation = 0
        self._counters = _aligned_words(len(work) * _COUNTER_WORDS)
        counters = self._counters.ctypes.data
        self._run_work = _RUN.work(1, table=self._table.ctypes.data, rows=len(work), counters=counters)
        self._prepare_work = _PREPARE.work(1, rows=len(work), counters=counters)
        self._run = _SIGNATURE(_RUN.address)
        self._prepare = _SIGNATURE(_PREPARE.address)
        self._run_descriptor = self._run_work.descriptor.ctypes.data
        self._prepare_descriptor = self._prepare_work.descriptor.ctypes.data

    def run(self) -> None:
        """Run all work. The interpreter's lock is not held meanwhile."""
        if self._num_threads == 1:
            self._run(self._run_descriptor, 0, 1)
            return
        self._generation = generation = (self._generation + 1) % _GENERATIONS

        def take_part() -> None:
            self._run(self._run_descriptor, generation, self._num_threads)

        self._prepare(self._prepare_descriptor, generation, self._num_threads)
        HELPERS.ask(take_part, self._num_threads - 1)
        take_part()


def _aligned_words(count: int) -> Array:
    """Zeroed int64 that begin at a cache line."""
    words = np.zeros(count + 8, dtype=np.int64)
    start = (-words.ctypes.data % 64) // 8
    return words[start : start + count]
