"""`dryfit calibrate --jobs N`: samples shared out over processes of this machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from dryfit.cli.console import print_note
from dryfit.errors import DryfitError

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryfit.calibration.shards import Shard
    from dryfit.calibration.task import CalibrationTask
    from dryfit.cli.calibration_progress import Interruption, SampleProgress
    from dryfit.quantization.calibration_state import CalibrationState

jobs_option = click.option(
    "--jobs",
    "-j",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Processes that share the samples; one that dies loses a few, which are shown again.",
)


def threads_per_job(jobs: int) -> int:
    """How many threads each process gets, so that all have no more than there are CPUs; one at least."""
    from dryfit.engine.execution_context import available_threads

    return max(1, available_threads() // jobs)


def run_jobs(
    task: CalibrationTask,
    names: Sequence[str],
    before: CalibrationState | None,
    jobs: int,
    progress: SampleProgress,
    interruption: Interruption,
    keep: Callable[[CalibrationState], None],
) -> CalibrationState:
    """What some processes gather; what they have finished when Ctrl-C is pressed.

    Args:
        task: what is to be gathered.
        names: of all samples.
        before: what an earlier run has gathered.
        jobs: how many processes.
        progress: is drawn, a shard at a time.
        interruption: ends the processes when it is asked for.
        keep: is given what was finished where the rest fails.

    Raises:
        DryfitError: as `dryfit.calibration.shards.collect_shards`.
    """
    from dryfit.calibration.shards import SAMPLES_PER_SHARD, collect_shards
    from dryfit.calibration.worker_processes import WorkerProcesses
    from dryfit.plugins import registry

    finished: list[CalibrationState] = []

    def watch(shard: Shard, state: CalibrationState, images: int) -> None:
        finished[:] = [state]
        progress.advance(len(shard.names), images)
        if shard.attempt > 1:
            print_note(f"A process died, and another has done its work: {shard.text}")

    only_own = "*" in registry.installed().switches.disabled
    try:
        with WorkerProcesses(jobs, registry.switch_off_foreign if only_own else None) as workers, progress.shown():
            state = collect_shards(
                task,
                names,
                workers,
                before=before,
                samples_per_shard=min(SAMPLES_PER_SHARD, -(-len(names) // jobs) or 1),
                watch=watch,
                is_stopped=lambda: interruption.is_asked,
            )
            if interruption.is_asked:
                workers.kill()
    except (DryfitError, KeyboardInterrupt):
        if finished:
            keep(finished[0])
        raise
    return state
