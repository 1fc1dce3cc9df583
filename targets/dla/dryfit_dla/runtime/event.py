"""Events that submissions wait for and signal: cuDLA's fences."""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Sequence
from concurrent import futures
from typing import TYPE_CHECKING

from dryfit_dla.runtime.status import DlaError, Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryfit_dla.runtime.submission import Submission

RUNTIME_LOCK = threading.RLock()
"""Held while anything of the runtime is looked at or changed, never while a loadable runs. One for all boards, as an
event may stand between any two cores; cuDLA takes one global lock too (API reference, cudlaSubmitTask)."""

if hasattr(os, "register_at_fork"):
    # A process forks when no other thread is changing the runtime, so that the child's copy is whole.
    os.register_at_fork(
        before=RUNTIME_LOCK.acquire, after_in_parent=RUNTIME_LOCK.release, after_in_child=RUNTIME_LOCK.release
    )


class Event:
    """An event that occurs once: a submission signals it at its end, or the program does.

    If a submission fails or is cancelled, the events that it would have signaled fail with the same error, and so do
    submissions that wait for them: nothing waits for an event that can no longer occur.

    Attributes:
        name: used in error messages.
        outcome: how it was settled; for the runtime.

    Example:
        >>> ready = Event("camera has a picture")
        >>> submission = device.submit(task, wait=[ready])
        >>> ready.signal()
    """

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.outcome: futures.Future[None] = futures.Future()
        self._signaller: Submission | None = None
        self._is_claimed = False
        self._is_awaited = False

    def __repr__(self) -> str:
        state = "signalled" if self.is_signalled else "failed" if self.error else "pending"
        return f"<Event {self.name!r}, {state}>" if self.name else f"<Event, {state}>"

    # What a program uses --------------------------------------------------------------------------------------------

    @property
    def is_signalled(self) -> bool:
        """Whether the event has occurred."""
        return self.is_settled and self.outcome.exception() is None

    @property
    def error(self) -> DlaError | None:
        """Why the event can no longer occur; None if it has occurred or still can."""
        found = self.outcome.exception() if self.is_settled else None
        return found if isinstance(found, DlaError) else None

    def signal(self) -> None:
        """Signal an event that no submission signals.

        Raises:
            DlaError: the event has already occurred, or a submission signals it.
        """
        with RUNTIME_LOCK:
            self.claim(None)
            self.settle(None)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the event occurs.

        Args:
            timeout: seconds on this machine; None waits without a limit.

        Returns:
            Whether it occurred before the timeout.

        Raises:
            DlaError: the event can no longer occur.
        """
        try:
            self.outcome.result(timeout)
        except DlaError as error:
            raise copy.copy(error) from error  # several may wait, and a traceback belongs to one of them
        except TimeoutError:
            return False
        return True

    # What the runtime uses, with its lock held ----------------------------------------------------------------------

    @property
    def is_settled(self) -> bool:
        """Whether it happened or failed."""
        return self.outcome.done()

    @property
    def signaller(self) -> Submission | None:
        """The submission that signals it; None while there is none, and for one of the program's."""
        return self._signaller

    @property
    def is_awaited(self) -> bool:
        """Whether a submission has waited for it."""
        return self._is_awaited

    def require_free(self) -> None:
        """Refuse an event that already has a signaler.

        Raises:
            DlaError: it has a signaller.
        """
        if self._is_claimed:
            raise DlaError(
                Status.INVALID_PARAM,
                "An event can be signaled only once, by one submission or by the program",
                where=repr(self),
                remedy="Make a new Event for each submission",
            )

    def claim(self, signaller: Submission | None) -> None:
        """Take a submission, or None for the program, as the one signaller.

        Raises:
            DlaError: there is one.
        """
        self.require_free()
        self._is_claimed, self._signaller = True, signaller

    def settle(self, error: DlaError | None) -> None:
        """It happened, or with an error never will."""
        self._signaller = None
        if error is None:
            self.outcome.set_result(None)
        else:
            self.outcome.set_exception(error)

    def when_settled(self, act: Callable[[], None]) -> None:
        """Call something as soon as it is settled; at once where it is."""
        self._is_awaited = True
        self.outcome.add_done_callback(lambda _: act())


def wait_for_all(events: Sequence[Event], timeout: float | None) -> bool:
    """Wait until all are settled, whether they happened or failed; without the lock. Returns whether they are.

    Args:
        events: any.
        timeout: seconds; None waits as long as it takes.
    """
    return not futures.wait([event.outcome for event in events], timeout).not_done
