"""Tasks that were handed to a core, and how far they are."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dryfit_dla.runtime.event import RUNTIME_LOCK, Event
from dryfit_dla.runtime.memory import RegisteredMemory
from dryfit_dla.runtime.module import Module
from dryfit_dla.runtime.status import DlaError, Status
from dryfit_dla.runtime.task import BoundTask

if TYPE_CHECKING:
    from dryfit_dla.runtime.task_queue import TaskQueue


class Stage(enum.Enum):
    """How far a submission is."""

    QUEUED = "queued"
    RUNNING = "running"
    ENDED = "ended"


class Submission:
    """What `Device.submit` took. Its tasks run one after the other, when all events that it waits for have happened.

    Attributes:
        started: happens when its first task is about to run.
        finished: happens when its last task has run. Others can wait for it: `submit(..., wait=[first.finished])`.
        tasks: what runs.
        waits: events that it waits for.
        signals: events that it signals at its end, `finished` among them.
        before: the submission of the same core that has to end first, while there is one.
        stage: how far it is.
    """

    def __init__(
        self, queue: TaskQueue, tasks: Sequence[BoundTask], waits: Sequence[Event], signals: Sequence[Event]
    ) -> None:
        self._queue = queue
        self.started, self.finished = Event("started"), Event("finished")
        self.tasks, self.waits, self.signals = tuple(tasks), tuple(waits), (*signals, self.finished)
        self.before: Submission | None = None
        self.stage = Stage.QUEUED

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until its last task has run.

        Args:
            timeout: seconds of this machine's time; None waits as long as it takes.

        Returns:
            Whether it ended before the timeout.

        Raises:
            DlaError: it was cancelled, a task failed, or what it waited for did.
        """
        return self.finished.wait(timeout)

    @property
    def status(self) -> Status | None:
        """How it ended; None while it has not."""
        with RUNTIME_LOCK:
            if self.stage is not Stage.ENDED:
                return None
            return Status.SUCCESS if self.finished.error is None else self.finished.error.status

    def cancel(self) -> bool:
        """Take it back, if it has not begun. Submissions that wait for it end with the same status.

        Returns:
            Whether it will not run.
        """
        with RUNTIME_LOCK:
            if self.stage is Stage.QUEUED:
                self._queue.remove(self)
                self.end(DlaError(Status.CANCELLED, "The submission was cancelled", where=self._queue.name))
            return self.status is Status.CANCELLED

    # What the queue uses, with the runtime's lock held ----------------------------------------------------------------

    def uses(self, what: Module | RegisteredMemory) -> bool:
        """Whether one of its tasks needs a module or a memory."""
        return any(task.uses(what) for task in self.tasks)

    @property
    def is_ready(self) -> bool:
        """Whether all that it waits for has happened, or cannot any more."""
        return all(event.is_settled for event in self.waits)

    def begin(self) -> DlaError | None:
        """It is about to run; or an error, when something that it waits for failed."""
        failed = next((event.error for event in self.waits if event.error is not None), None)
        if failed is None:
            self.started.settle(None)
            return None
        first = failed.__cause__ if isinstance(failed.__cause__, DlaError) else failed
        error = DlaError(
            failed.status,
            "The submission was not run, because what it waits for did not happen",
            where=self._queue.name,
            found=first,
        )
        error.__cause__ = first
        return error

    def end(self, error: DlaError | None) -> None:
        """It ended: signal its events, or let them fail."""
        self.stage, self.before = Stage.ENDED, None
        if not self.started.is_settled:
            self.started.settle(error)
        for event in self.signals:
            event.settle(error)
