"""Locks in the child of a fork: what a thread held that the child does not have would stay locked for ever.

The child has a copy of everything, made while the other threads stood anywhere. So whoever guards its state by a lock
begins anew in the child where the lock is lost: with a new lock, and without what was being changed.
"""

from __future__ import annotations

import os
import threading
import weakref
from types import TracebackType
from typing import Any, Protocol


class ForkAware(Protocol):
    """What begins anew in the child of a fork."""

    def after_fork_in_child(self) -> None:
        """The process is the child of a fork, and has one thread."""


_aware: weakref.WeakSet[Any] = weakref.WeakSet()


def watch_forks(one: ForkAware) -> None:
    """Call `one.after_fork_in_child()` in every child of a fork, as long as it lives."""
    _aware.add(one)


def is_lost(lock: threading.Lock | threading.RLock) -> bool:
    """Whether a lock is held by a thread that did not survive the fork; only for `after_fork_in_child`."""
    if lock.acquire(blocking=False):
        lock.release()
        return False
    return True


class ForkSafeLock:
    """A reentrant lock for `with` that is free in the child of a fork, unless the thread that forked holds it.

    It is for state that each holder leaves usable at any time.

    Example:
        >>> lock = ForkSafeLock()
        >>> with lock:
        ...     pass
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        watch_forks(self)

    def after_fork_in_child(self) -> None:
        """Begin anew where another thread held it."""
        if is_lost(self._lock):
            self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()


def _after_fork_in_child() -> None:
    for one in list(_aware):
        one.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
