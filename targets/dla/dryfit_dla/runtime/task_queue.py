"""The queue of a core: submissions run one after the other, in the order in which they came.

No thread waits for an event. The submission at the head goes to the core's one thread when everything that it waits for
has happened, so whatever still waits can be taken back at any time. No core ever stops, either: a submission that would
wait for itself, by way of others, is refused when it is made. A submission waits for the one before it on its core and
for the signallers of its events. An event has one signaller, so a circle stays one for ever, and it is closed by the
last of its submissions: that one is refused.
"""

from __future__ import annotations

import os
import weakref
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from dryfit_dla.runtime.event import RUNTIME_LOCK, Event
from dryfit_dla.runtime.memory import Module, RegisteredMemory
from dryfit_dla.runtime.status import DlaError, Status
from dryfit_dla.runtime.submission import BoundTask, Stage, Submission

MAX_EVENTS = 29
"""Events that a submission can wait for, and as many that it can signal.

Source: cuDLA API reference, cudlaSubmitTask: 29 fences before and at the start of a task, 29 at its end."""


_queues: weakref.WeakSet[TaskQueue] = weakref.WeakSet()


class TaskQueue:
    """What a core has to do.

    Attributes:
        name: the core's, for errors.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.begin()
        _queues.add(self)

    def begin(self) -> None:
        """Have nothing to do, and a new thread to do it."""
        self._waiting: deque[Submission] = deque()
        self._running: Submission | None = None
        self._failure: DlaError | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=self.name)

    def put(self, tasks: Sequence[BoundTask], waits: Sequence[Event], signals: Sequence[Event]) -> Submission:
        """Queue tasks; with the runtime's lock held.

        Raises:
            DlaError: there are too many events, one is signalled by somebody else, or the submission would wait for
                itself.
        """
        before = self.unfinished[-1] if self.unfinished else None
        self._require_order(waits, signals, before)
        submission = Submission(self, tasks, waits, signals)
        submission.before = before
        for event in (submission.started, *submission.signals):
            event.claim(submission)
        self._waiting.append(submission)
        for event in submission.waits:
            event.when_settled(self._advance)
        self._advance()
        return submission

    @property
    def unfinished(self) -> list[Submission]:
        """Submissions that have not ended, in order; with the runtime's lock held."""
        return [*([] if self._running is None else [self._running]), *self._waiting]

    def uses(self, what: Module | RegisteredMemory) -> bool:
        """Whether a submission that has not ended needs a module or a memory; with the runtime's lock held."""
        return any(submission.uses(what) for submission in self.unfinished)

    def remove(self, submission: Submission) -> None:
        """Take a submission out that has not begun; with the runtime's lock held."""
        place = self._waiting.index(submission)
        del self._waiting[place]
        if place < len(self._waiting):
            self._waiting[place].before = submission.before
        self._advance()

    def take_failure(self) -> DlaError | None:
        """The first error of a task since this was asked last; with the runtime's lock held."""
        failure, self._failure = self._failure, None
        return failure

    def close(self) -> None:
        """Cancel what has not begun, and wait for what has."""
        with RUNTIME_LOCK:
            for submission in reversed(self._waiting.copy()):
                submission.cancel()
        self._thread.shutdown()

    def _require_order(self, waits: Sequence[Event], signals: Sequence[Event], before: Submission | None) -> None:
        for role, events in (("wait for", waits), ("signal", signals)):
            strange = next((one for one in events if not isinstance(one, Event)), None)
            if strange is not None:
                raise DlaError(
                    Status.INVALID_PARAM,
                    f"A submission can {role} only Event objects",
                    where=self.name,
                    found=type(strange).__name__,
                    remedy="To wait for a submission, pass its `finished` event"
                    if isinstance(strange, Submission)
                    else None,
                )
            if len(events) > MAX_EVENTS:
                raise DlaError(
                    Status.UNSUPPORTED_OPERATION,
                    f"A submission can {role} at most {MAX_EVENTS} events",
                    where=self.name,
                    found=len(events),
                    allowed=f"at most {MAX_EVENTS}",
                    remedy="Split it into several submissions",
                    source="cuDLA API reference, cudlaSubmitTask",
                )
        if len(set(signals)) != len(signals):
            raise DlaError(
                Status.INVALID_PARAM,
                "A submission must not signal the same event twice",
                where=self.name,
                remedy="List each event once",
            )
        for event in signals:
            event.require_free()
        circle = event_in_circle(waits, signals, before)
        if circle is not None:
            raise DlaError(
                Status.UNSUPPORTED_OPERATION,
                "The submission would deadlock: it signals an event that must occur before it can start",
                where=self.name,
                found=circle,
                remedy="Submit it before the submissions that wait for the event, or cancel one of them",
            )

    def _advance(self) -> None:
        """Hand the head of the queue to the thread, if it is free and nothing holds it back."""
        with RUNTIME_LOCK:
            if self._running is None and self._waiting and self._waiting[0].is_ready:
                self._running = self._waiting.popleft()
                self._running.stage = Stage.RUNNING
                self._thread.submit(self._run, self._running)

    def _run(self, submission: Submission) -> None:
        with RUNTIME_LOCK:
            error = submission.begin()
        if error is None:
            error = self._execute(submission)
        with RUNTIME_LOCK:
            self._running = None
            if error is not None and error.status is not Status.CANCELLED:
                self._failure = self._failure or error
            submission.end(error)
            self._advance()

    def _execute(self, submission: Submission) -> DlaError | None:
        """Run the tasks; returns what went wrong."""
        for task in submission.tasks:
            try:
                task.execute()
            except Exception as found:  # noqa: BLE001  whatever a kernel raises belongs to who waits for the task
                error = DlaError(
                    Status.UNKNOWN,
                    "A task failed",
                    where=f"{self.name}, module {task.module.name!r}",
                    found=f"{type(found).__name__}: {found}",
                    remedy="Check the inputs of this task, and submit it again",
                )
                error.__cause__ = found
                return error
        return None


def _after_fork_in_child() -> None:
    """Start again in the child of a fork, which has no core threads: unfinished submissions fail there."""
    queues = list(_queues)
    unfinished = [(queue.name, submission) for queue in queues for submission in queue.unfinished]
    for queue in queues:
        queue.begin()
    for name, submission in unfinished:
        submission.end(
            DlaError(
                Status.CANCELLED,
                "The process was forked before the submission ended",
                where=name,
                remedy="Wait for the submission in the parent, or submit it again in the child",
            )
        )


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def event_in_circle(waits: Sequence[Event], signals: Sequence[Event], before: Submission | None) -> Event | None:
    """An event that a submission would signal and that has to happen before it can begin; None where there is none.

    Args:
        waits: the events that it waits for.
        signals: the events that it signals.
        before: the last submission of its core that has not ended.
    """
    own = set(signals)
    for event in waits:
        if event in own:
            return event
    if not any(event.is_awaited for event in signals):
        return None
    reached = set[Submission]()
    open_ends = [before, *(event.signaller for event in waits)]
    while open_ends:
        submission = open_ends.pop()
        if submission is None or submission in reached or submission.stage is Stage.ENDED:
            continue
        reached.add(submission)
        for event in submission.waits:
            if event in own:
                return event
            open_ends.append(event.signaller)
        open_ends.append(submission.before)
    return None
