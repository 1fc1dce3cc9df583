"""The stages of a build as its log, a progress monitor, observers of plugins and a directory of dumps see them."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from dryfit.engine.progress import ProgressMonitor
from dryfit.errors import BuildError
from dryfit.plugins.contributions import BuildObserver
from dryfit.short_text import printable

logger = logging.getLogger("dryfit.builder")

ResultT = TypeVar("ResultT")
ItemT = TypeVar("ItemT")


class Stages:
    """Runs the stages of one build, in a `with` statement, so that phases are finished when one fails.

    Args:
        name: of the whole, such as `Building resnet50`.
        num_stages: how many will run.
        monitor: told of each; may cancel.
        dump_directory: where a text of each stage's result goes.
        observer: told of each; the stages tell it what they find.

    Attributes:
        observer: the one that was given, or one that does nothing.
    """

    def __init__(
        self,
        name: str,
        num_stages: int,
        monitor: ProgressMonitor | None = None,
        dump_directory: Path | None = None,
        observer: BuildObserver | None = None,
    ) -> None:
        self._name = name
        self._num_stages = num_stages
        self._monitor = monitor
        self._dump_directory = dump_directory
        self.observer = observer or BuildObserver()
        self._done = 0

    def __enter__(self) -> Self:
        """Begin the phase of the whole."""
        logger.info("%s", printable(self._name, kept=""))
        if self._monitor is not None:
            self._monitor.phase_start(self._name, None, self._num_stages)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Finish the phase of the whole."""
        if self._monitor is not None:
            self._monitor.phase_finish(self._name)

    def run(
        self, name: str, stage: Callable[[], ResultT], describe: Callable[[ResultT], Iterable[str]] = lambda result: ()
    ) -> ResultT:
        """Run one stage.

        Args:
            name: in a word or two.
            stage: what it does.
            describe: lines about its result, for the dump.

        Raises:
            BuildError: the progress monitor cancelled the build.
        """
        result = stage()
        logger.info("stage %d of %d done: %s", self._done + 1, self._num_stages, name)
        if self._dump_directory is not None:
            self._dump_directory.mkdir(parents=True, exist_ok=True)
            file_name = f"{self._done + 1:02d}-{re.sub('[^a-z0-9]+', '-', name.lower())}.txt"
            text = "".join(f"{line}\n" for line in describe(result))
            (self._dump_directory / file_name).write_text(text, encoding="utf-8")
        self.observer.stage_finished(name, self._done, self._num_stages)
        self._done += 1
        self._step(self._name, self._done - 1)
        return result

    @contextmanager
    def steps(self, name: str, items: list[ItemT]) -> Iterator[Iterator[ItemT]]:
        """A phase inside the whole with one step an item; gives the items one after another.

        Raises:
            BuildError: the progress monitor cancelled the build.
        """
        if self._monitor is not None:
            self._monitor.phase_start(name, self._name, len(items))
        try:
            yield self._each(name, items)
        finally:
            self.finish_phase(name)

    def start_phase(self, name: str, num_steps: int = 0) -> None:
        """Begin a phase inside the whole; 0 where its number of steps is not known."""
        if self._monitor is not None:
            self._monitor.phase_start(name, self._name, num_steps)

    def complete_step(self, name: str, step: int) -> bool:
        """Tell of a step of an open phase; False where the monitor cancels."""
        return self._monitor is None or self._monitor.step_complete(name, step)

    def finish_phase(self, name: str) -> None:
        """End a phase that `start_phase` began."""
        if self._monitor is not None:
            self._monitor.phase_finish(name)

    def cancelled(self, phase: str, step: int) -> BuildError:
        """The error of a build that the monitor cancelled."""
        return BuildError(
            "The progress monitor canceled the build",
            where=f"phase {phase!r}",
            found=f"step {step}",
            remedy="Start the build again, or let step_complete return True",
        )

    def _each(self, name: str, items: list[ItemT]) -> Iterator[ItemT]:
        for step, item in enumerate(items):
            yield item
            self._step(name, step)

    def _step(self, phase: str, step: int) -> None:
        if not self.complete_step(phase, step):
            raise self.cancelled(phase, step)
