"""Progress of long work: TensorRT's `IProgressMonitor`, a display for terminals, and runs over many inputs."""

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


class ProgressMonitor(abc.ABC):
    """Is told where a build or a run over many inputs stands, and can cancel it.

    Phases nest: a phase names the phase that it is part of. Steps of a phase complete in order. What is cancelled
    finishes its open phases, innermost first.

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
        """A phase begins.

        Args:
            phase_name: unique among the phases that are open.
            parent_phase: the open phase that it is part of; None at the top.
            num_steps: how many steps it will take; 0 where that is not known.
        """

    @abc.abstractmethod
    def step_complete(self, phase_name: str, step: int) -> bool:
        """Step number `step`, from 0, of an open phase is done. Return False to cancel the work."""

    @abc.abstractmethod
    def phase_finish(self, phase_name: str) -> None:
        """The phase is over, complete or cancelled."""


class TerminalProgress(ProgressMonitor):
    """Progress bars on a terminal; says nothing where the stream is no terminal.

    Use it in a `with` statement, so that the display is taken down when the work fails.

    Args:
        stream: where to draw; standard error when absent.
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
        """Draw a bar, indented below its parent's."""
        if not self._tasks:
            self._progress.start()
        depth = 0 if parent_phase is None else self._depths.get(parent_phase, 0) + 1
        self._depths[phase_name] = depth
        self._tasks[phase_name] = self._progress.add_task(
            "  " * depth + printable(phase_name, kept=""), total=num_steps or None
        )

    def step_complete(self, phase_name: str, step: int) -> bool:
        """Move the phase's bar on. Never cancels."""
        if phase_name in self._tasks:
            self._progress.update(self._tasks[phase_name], completed=step + 1)
        return True

    def phase_finish(self, phase_name: str) -> None:
        """Take the phase's bar away, and the display with the last one."""
        self._depths.pop(phase_name, None)
        task = self._tasks.pop(phase_name, None)
        if task is not None:
            self._progress.remove_task(task)
        if not self._tasks:
            self._progress.stop()

    def close(self) -> None:
        """Take the display down, whatever is still open."""
        for phase_name in reversed(list(self._tasks)):
            self.phase_finish(phase_name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def stepped(items: Sequence[ItemT], phase_name: str, progress: ProgressMonitor | None) -> Iterator[ItemT]:
    """Items one after another, each a step of a phase, which is done when the next is asked for.

    Args:
        items: what is worked on.
        phase_name: what the phase is called.
        progress: is told; None for nobody.

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
    """Run a context on one set of inputs after another, lazily.

    Args:
        context: what runs.
        inputs: each is what `ExecutionContext.run` takes as its first argument.
        progress: is told of one phase with a step for each set of inputs.
        phase_name: what the phase is called.

    Yields:
        The outputs of each set, in order.

    Raises:
        ExecutionError: inputs do not fit the engine, or `progress` cancelled the run.
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
