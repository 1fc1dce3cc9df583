"""Helper threads: they sleep until a schedule asks for help, and are shared by all schedules of the process.

They are Python threads that spend their time in native code, without the interpreter's lock. A schedule never waits for
one to come: it starts at once, and who comes in time takes part.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import queue
import threading
from collections.abc import Callable

Job = Callable[[], None]


class HelperThreads:
    """Threads that take jobs from one queue.

    Attributes:
        generation: goes up when all threads are gone, with what they were doing: after a fork.
    """

    def __init__(self) -> None:
        self.generation = 0
        self._wanted = ctypes.c_int64()
        self.forget()

    def forget(self) -> None:
        """Begin anew, without threads."""
        self.generation += 1
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._wanted.value = 0

    @property
    def wanted_address(self) -> int:
        """Where the number of jobs stands that nobody has taken yet: a job that only waits ends when there are any."""
        return ctypes.addressof(self._wanted)

    def ask(self, job: Job, helpers: int) -> None:
        """Offer a job to so many helpers; it has to be one that may run late, or several times, or never."""
        if len(self._threads) < helpers:
            self._grow(helpers)
        self._offer(job, helpers)

    def stop(self) -> None:
        """Let the threads end, and wait for them."""
        with self._lock:
            threads, self._threads = self._threads, []
        self._offer(None, len(threads))
        for thread in threads:
            thread.join(timeout=1.0)

    def _offer(self, job: Job | None, times: int) -> None:
        with self._lock:
            for _ in range(times):
                self._jobs.put(job)
            self._wanted.value = self._jobs.qsize()

    def _take(self) -> Job | None:
        job = self._jobs.get()
        with self._lock:
            self._wanted.value = self._jobs.qsize()
        return job

    def _grow(self, helpers: int) -> None:
        with self._lock:
            while len(self._threads) < helpers:
                thread = threading.Thread(target=self._work, name=f"dryfit-{len(self._threads) + 1}", daemon=True)
                try:
                    thread.start()
                except RuntimeError:
                    # No thread can be had, or the interpreter is about to end: who asked works alone.
                    return
                self._threads.append(thread)

    def _work(self) -> None:
        while (job := self._take()) is not None:
            job()
            del job


HELPERS = HelperThreads()

atexit.register(HELPERS.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=HELPERS.forget)  # a child has none of its parent's threads
