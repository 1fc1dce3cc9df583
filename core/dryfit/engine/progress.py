"""Progress of long operations: TensorRT's `IProgressMonitor`, a terminal display, and runs over many inputs."""

from __future__ import annotations

import abc
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self, TypeVar

from dryfit.errors import ExecutionError
from dryfit.short_text import printable

if TYPE_CHECKING:
    import numpy as np
    from rich.progress import TaskID

    from dryfit.engine.execution_context import ExecutionContext


ItemT = TypeVar("ItemT")


ONCE = "Compiling kernels, once"
"""Begins the name of a phase that a machine has once, and that takes many times what a build takes otherwise."""


class ProgressMonitor(abc.ABC):
    """Receives the progress of a build, or of a run over many inputs, and can cancel it.

    Phases nest: each phase names its parent phase. Steps of a phase complete in order. On cancellation, open phases
    finish, innermost first.

    Example:
        >>> class Printer(ProgressMonitor):
        ...     def phase_start(self, phase_name, parent_phase, num_steps):
        ...         print(f"{phase_name}: {num_steps} steps")
        ...     def step_complete(self, phase_name, step):
        ...         return True
        ...     def phase_finish(self, phase_name):
        ...         print(f"{phase_name}: done")
    """

    @abc.abstractmethod
    def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
        """Called when a phase starts.

        Args:
            phase_name: name of the phase, unique among open phases.
            parent_phase: open phase that contains the new phase; None at the top level.
            num_steps: number of steps; 0 if unknown.
        """

    @abc.abstractmethod
    def step_complete(self, phase_name: str, step: int) -> bool:
        """Called when step number `step`, starting from 0, of an open phase is complete. Return False to cancel."""

    @abc.abstractmethod
    def phase_finish(self, phase_name: str) -> None:
        """Called when a phase is finished, complete or cancelled."""


class TerminalProgress(ProgressMonitor):
    """Shows progress bars on a terminal. To other streams, it writes a line about what happens once and takes long.

    Use it in a `with` statement, so that the display is removed if the operation fails.

    Args:
        stream: output stream; default: standard error.
    """

    def __init__(self, stream: IO[str] | None = None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        console = Console(file=stream or sys.stderr)
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._tasks: dict[str, TaskID] = {}
        self._depths: dict[str, int] = {}

    def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
        """Draw a bar, indented below its parent's bar."""
        if not self._tasks:
            self._progress.start()
        if not self._progress.console.is_terminal and phase_name.startswith(ONCE):
            total = f": {num_steps}" if num_steps else ""
            print(f"{phase_name}{total}", file=self._progress.console.file, flush=True)
        depth = 0 if parent_phase is None else self._depths.get(parent_phase, 0) + 1
        self._depths[phase_name] = depth
        self._tasks[phase_name] = self._progress.add_task(
            "  " * depth + printable(phase_name, kept=""), total=num_steps or None
        )

    def step_complete(self, phase_name: str, step: int) -> bool:
        """Advance the bar of the phase. Never cancels."""
        if phase_name in self._tasks:
            self._progress.update(self._tasks[phase_name], completed=step + 1)
        return True

    def phase_finish(self, phase_name: str) -> None:
        """Remove the bar of the phase, and the display with the last bar."""
        self._depths.pop(phase_name, None)
        task = self._tasks.pop(phase_name, None)
        if task is not None:
            self._progress.remove_task(task)
        if not self._tasks:
            self._progress.stop()

    def close(self) -> None:
        """Remove the display, even if phases are open."""
        for phase_name in reversed(list(self._tasks)):
            self.phase_finish(phase_name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def stepped(items: Sequence[ItemT], phase_name: str, progress: ProgressMonitor | None) -> Iterator[ItemT]:
    """Iterate over items, each as a step of a phase; a step is complete when the next item is requested.

    Args:
        items: items to iterate over.
        phase_name: name of the phase.
        progress: monitor that receives the steps; None for none.

    Raises:
        ExecutionError: `progress` cancelled the work.
    """
    if progress is None:
        yield from items
        return
    progress.phase_start(phase_name, None, len(items))
    try:
        for step, item in enumerate(items):
            yield item
            if not progress.step_complete(phase_name, step):
                raise ExecutionError(
                    "The progress monitor canceled the work",
                    where=f"phase {phase_name!r}",
                    found=f"step {step}",
                    remedy="Start again, or let step_complete return True",
                )
    finally:
        progress.phase_finish(phase_name)


def run_many(
    context: ExecutionContext,
    inputs: Iterable[Mapping[str, Any] | Any],
    progress: ProgressMonitor | None = None,
    phase_name: str = "Running",
) -> Iterator[dict[str, np.ndarray[Any, Any]]]:
    """Run a context on several sets of inputs, lazily.

    Args:
        context: context to run.
        inputs: sets of inputs, each as the first argument of `ExecutionContext.run`.
        progress: monitor that receives one phase with a step per set of inputs.
        phase_name: name of the phase.

    Yields:
        The outputs of each set, in order.

    Raises:
        ExecutionError: Inputs do not match the engine, or `progress` cancelled the run.
    """
    if progress is None:
        yield from map(context.run, inputs)
        return
    try:
        num_steps = len(inputs)  # type: ignore[arg-type]
    except TypeError:
        num_steps = 0
    progress.phase_start(phase_name, None, num_steps)
    try:
        for step, arrays in enumerate(inputs):
            outputs = context.run(arrays)
            goes_on = progress.step_complete(phase_name, step)
            yield outputs
            if not goes_on:
                raise ExecutionError(
                    "The progress monitor canceled the run",
                    where=f"phase {phase_name!r}",
                    found=f"step {step}",
                    remedy="Run again, or let step_complete return True",
                )
    finally:
        progress.phase_finish(phase_name)
