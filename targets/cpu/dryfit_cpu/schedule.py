"""The schedule: the steps of an engine in order, native ones in runs that do not return to Python in between."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence

from dryfit.forking import is_lost, watch_forks
from dryfit.target.kernels import Step
from dryfit_cpu.steps import NativeStep
from dryfit_cpu.team import Team

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

    def run(self) -> None:
        """Run all work. The interpreter's lock is not held meanwhile."""
        self._team.run(self._entry)
