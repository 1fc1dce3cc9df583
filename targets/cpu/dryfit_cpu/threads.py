"""Helper threads: they sleep until a schedule asks for help, and are shared by all schedules of the process.

They are Python threads that spend their time in native code, without the interpreter's lock. A schedule never waits for
one to come: it starts at once, and who comes in time takes part.
"""

from __future__ import annotations

import atexit
import os
import queue
import threading
from collections.abc import Callable

Job = Callable[[], None]


class HelperThreads:
    """Threads that take jobs from one queue."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()

    def ask(self, job: Job, helpers: int) -> None:
        """Offer a job to so many helpers; it has to be one that may run late, or several times, or never."""
        if len(self._threads) < helpers:
            self._grow(helpers)
        for _ in range(helpers):
            self._jobs.put(job)

    def stop(self) -> None:
        """Let the threads end, and wait for them."""
        with self._lock:
            threads, self._threads = self._threads, []
        for _ in threads:
            self._jobs.put(None)
        for thread in threads:
            thread.join(timeout=1.0)

    def _grow(self, helpers: int) -> None:
        with self._lock:
            while len(self._threads) < helpers:
                thread = threading.Thread(
                    target=self._work, args=(self._jobs,), name=f"dryfit-{len(self._threads) + 1}", daemon=True
                )
                try:
                    thread.start()
                except RuntimeError:
                    # No thread can be had, or the interpreter is about to end: who asked works alone.
                    return
                self._threads.append(thread)

    @staticmethod
    def _work(jobs: queue.SimpleQueue[Job | None]) -> None:
        while (job := jobs.get()) is not None:
            job()
            del job


HELPERS = HelperThreads()


def _forget_threads() -> None:
    """A forked child has none of its parent's threads."""
    HELPERS.__init__()  # type: ignore[misc]


atexit.register(HELPERS.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)
