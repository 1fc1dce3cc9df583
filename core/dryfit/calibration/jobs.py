"""Calibration samples distributed over processes of this machine, with a progress counter."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Self

from dryfit.calibration.shards import SAMPLES_PER_SHARD, Shard, collect_shards
from dryfit.calibration.task import CalibrationTask
from dryfit.calibration.worker_processes import WorkerProcesses
from dryfit.errors import DryfitError
from dryfit.plugins import registry
from dryfit.quantization.calibration_data import NamedFeeds, image_count
from dryfit.quantization.calibration_state import CalibrationState
from dryfit.target import machine_code


class SampleCount:
    """Counts the samples of a run. Derive from it to show progress, or to stop between two samples.

    Args:
        total: number of samples, including those of an earlier run.
        done: number of samples processed by an earlier run.

    Attributes:
        images: number of processed images, counted along the first axis of the first input.
        seconds: time since the first sample was requested.
    """

    def __init__(self, total: int, done: int) -> None:
        self.images = 0
        self.seconds = 0.0
        self.total, self.done = total, done

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    @property
    def is_stopped(self) -> bool:
        """Whether the run should stop before the next sample."""
        return False

    def __call__(self, samples: Iterator[NamedFeeds]) -> Iterator[NamedFeeds]:
        """Yield the samples until they end or the run is stopped."""
        with self.shown():
            for sample in samples:
                if self.is_stopped:
                    return
                yield sample
                self.advance(1, image_count(sample[1]))

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Measure the time from the start of a `with` statement."""
        self._start = time.perf_counter()
        yield

    def advance(self, samples: int, images: int) -> None:  # noqa: ARG002  for classes that show them
        """Add the images that were processed since the last call."""
        self.images += images
        self.seconds = time.perf_counter() - self._start

    def tell(self, text: str) -> None:
        """Log a message about the run."""
        logging.getLogger("dryfit.calibration").warning(text)

    @property
    def images_per_second(self) -> float:
        """Throughput of the run so far."""
        return self.images / self.seconds if self.seconds else 0.0


def threads_per_job(jobs: int) -> int:
    """Return the number of threads per process, so that the total does not exceed the CPUs; at least one."""
    return max(1, machine_code.usable_processors() // jobs)


def run_jobs(
    task: CalibrationTask,
    names: Sequence[str],
    before: CalibrationState | None,
    jobs: int,
    count: SampleCount,
    keep: Callable[[CalibrationState], None],
) -> CalibrationState:
    """Return the state collected by several processes; if stopped, what they have finished.

    Args:
        task: calibration task.
        names: names of all samples.
        before: state that an earlier run collected.
        jobs: number of processes.
        count: counter that receives each shard; stopping it ends the processes.
        keep: function that receives the finished state if the rest fails.

    Raises:
        DryfitError: See `dryfit.calibration.shards.collect_shards`.
    """
    finished: list[CalibrationState] = []

    def watch(shard: Shard, state: CalibrationState, images: int) -> None:
        finished[:] = [state]
        count.advance(len(shard.names), images)
        if shard.attempt > 1:
            count.tell(f"A worker process died; its work was repeated: {shard.text}")

    only_own = "*" in registry.switches.disabled
    try:
        with WorkerProcesses(jobs, registry.switch_off_foreign if only_own else None) as workers, count.shown():
            state = collect_shards(
                task,
                names,
                workers,
                before=before,
                samples_per_shard=min(SAMPLES_PER_SHARD, -(-len(names) // jobs) or 1),
                watch=watch,
                is_stopped=lambda: count.is_stopped,
            )
            if count.is_stopped:
                workers.kill()
    except (DryfitError, KeyboardInterrupt):
        if finished:
            keep(finished[0])
        raise
    return state
