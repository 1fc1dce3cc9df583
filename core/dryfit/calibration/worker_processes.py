"""Worker processes that can fail independently.

Python's own process pool breaks as a whole if one process dies, and the work of all others is lost. Here, a dying
process fails only the call that it was working on, and the next call gets a new process.
"""

from __future__ import annotations

import multiprocessing
import pickle
import queue
import signal
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any

_PROCESSES = multiprocessing.get_context("spawn")
"""Started afresh: a copy of a process that has threads may wait forever for a lock."""

_SECONDS_TO_END = 5.0


class WorkerProcesses(Executor):
    """An executor of processes, each started on first use.

    Functions, arguments and results are pickled. A call whose process dies fails with `BrokenExecutor`. Only this
    process handles Ctrl-C. A script that uses this class must keep its work under `if __name__ == "__main__":`, as
    Python requires for spawned processes.

    Args:
        count: number of concurrent processes.
        initializer: function called in each process before its first call, as in `ProcessPoolExecutor`.

    Example:
        >>> with WorkerProcesses(2) as workers:
        ...     workers.submit(pow, 2, 10).result()
        1024
    """

    def __init__(self, count: int, initializer: Callable[[], object] | None = None) -> None:
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="worker process")
        self._workers = [_Worker(initializer) for _ in range(count)]
        self._idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        """Submit a call; see `concurrent.futures.Executor.submit`.

        Raises:
            RuntimeError: The executor was shut down.
        """
        return self._threads.submit(self._call, function, arguments, options)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more calls, and end the processes after the last one."""
        self._threads.shutdown(wait=wait, cancel_futures=cancel_futures)
        if not wait:
            threading.Thread(target=self.shutdown, daemon=True).start()
            return
        for worker in self._workers:
            worker.end()

    def kill(self) -> None:
        """End the processes now. Calls in progress fail; waiting calls are cancelled."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            worker.kill()
        self._threads.shutdown()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for the work; after an exception, end it."""
        if kind is None:
            self.shutdown()
        else:
            self.kill()

    def _call(self, function: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        worker = self._idle.get()  # there are as many workers as threads
        try:
            return worker.call(function, arguments, options)
        finally:
            self._idle.put(worker)


class _Worker:
    """A slot for one process, which is replaced if it dies."""

    def __init__(self, initializer: Callable[[], object] | None) -> None:
        self._initializer = initializer
        self._lock = threading.Lock()
        self._is_killed = False
        self._running: tuple[BaseProcess, Connection] | None = None

    def call(self, function: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Run the function in the process and return or raise its result.

        Raises:
            BrokenExecutor: The process died.
        """
        message = pickle.dumps((function, arguments, options))
        process, connection = self._started()
        try:
            connection.send_bytes(message)
            answer = connection.recv_bytes()
        except (EOFError, OSError) as error:
            process.join()
            connection.close()
            self._running = None
            raise BrokenExecutor(f"The worker process {_ended(process.exitcode)}") from error
        has_result, value = pickle.loads(answer)  # noqa: S301  our own process wrote it
        if not has_result:
            raise value
        return value

    def end(self) -> None:
        """End the idle process."""
        if self._running is not None:
            process, connection = self._running
            connection.close()
            process.join(_SECONDS_TO_END)
            self.kill()

    def kill(self) -> None:
        """End the process without starting another one."""
        with self._lock:
            self._is_killed = True
            if self._running is not None:
                self._running[0].kill()

    def _started(self) -> tuple[BaseProcess, Connection]:
        with self._lock:
            if self._is_killed:
                raise BrokenExecutor("The worker processes were ended")
            if self._running is None:
                ours, theirs = _PROCESSES.Pipe()
                process = _PROCESSES.Process(target=_serve, args=(theirs, self._initializer), daemon=True)
                process.start()
                theirs.close()  # so that the end of the process is the end of the connection
                self._running = process, ours
            return self._running


def _serve(connection: Connection, initializer: Callable[[], object] | None) -> None:
    """Answer calls in a worker process until the connection is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if initializer is not None:
        initializer()
    while True:
        try:
            message = connection.recv_bytes()
        except EOFError:
            return
        connection.send_bytes(_answer(message))


def _answer(message: bytes) -> bytes:
    """Return (whether a call succeeded, its result or exception)."""
    try:
        function, arguments, options = pickle.loads(message)  # noqa: S301  the process that started this one wrote it
        return pickle.dumps((True, function(*arguments, **options)))
    except Exception as error:  # noqa: BLE001  it is the answer
        try:
            return pickle.dumps((False, error))
        except Exception:  # noqa: BLE001  what can be told of an exception that cannot be sent
            return pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))


def _ended(status: int | None) -> str:
    if status is not None and status < 0:
        return f"was ended by {signal.Signals(-status).name}"
    return f"ended with exit status {status}"
