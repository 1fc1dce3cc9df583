"""Tests of third-party code in a separate process: a crash fails one test, and the others continue.

The process is a fork, so that it has the target and the test in memory and starts in milliseconds. If the system cannot
fork (Windows), the code runs in pytest's own process.
"""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import gc
import importlib
import mmap
import os
import pickle
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import IO

import pytest

from dryfit.errors import PluginError
from dryfit.plugins import registry

_NOTE_BYTES = 4096
_note: mmap.mmap | None = None
"""Memory that a process shares with the one that waits for it: what it is about to run."""


def can_fork() -> bool:
    """Return whether tests run in a separate process on this system."""
    return hasattr(os, "fork")


def about_to_run(what: str) -> None:
    """Record what runs next; it is reported if the process ends before the next call."""
    if _note is not None:
        data = what.encode()[: _NOTE_BYTES - 2]
        _note[:] = len(data).to_bytes(2, "little") + data + bytes(_NOTE_BYTES - 2 - len(data))


def run_in_own_process(test: Callable[[], None]) -> None:
    """Run a test as pytest would, in a fork.

    The result (passed, failed, skipped) is that of the fork; changes in memory are lost. If the process ends, the test
    fails with the signal and the last record.
    """
    if not can_fork():
        test()
        return
    import_what_builds_need()
    global _note  # noqa: PLW0603  the fork reads the same name
    _note = mmap.mmap(-1, _NOTE_BYTES)
    try:
        _wait_for(*_forked(test))
    finally:
        _note = None


@functools.cache
def import_what_builds_need() -> None:
    """Import the builder and the host's kernels once, in pytest's process, instead of in every fork."""
    importlib.import_module("dryfit.building")
    with contextlib.suppress(PluginError):  # reported by the test that builds with it
        _ = registry.host().kernels


def _forked(test: Callable[[], None]) -> tuple[int, IO[bytes]]:
    """The fork's process id, and where its answer comes from."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        # Threads of this process are not in the fork, and it waits for none of them.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        os.close(writing)
        return child, os.fdopen(reading, "rb")
    # What is the fork: it never goes back to pytest.
    code = 1
    try:
        os.close(reading)
        gc.freeze()  # what pytest holds is never garbage here: no collection reads it all, and so copies its memory
        faulthandler.disable()
        _forbid_core_dumps()
        with os.fdopen(writing, "wb") as answer:
            pickle.dump(_outcome(test), answer)
        code = 0
    finally:
        os._exit(code)


def _outcome(test: Callable[[], None]) -> tuple[str, str]:
    """(`passed`, `failed`, `skipped` or `raised`; the message)."""
    try:
        test()
    except pytest.skip.Exception as skipped:
        return "skipped", str(skipped)
    except pytest.fail.Exception as failure:
        return "failed", str(failure)
    except BaseException:  # noqa: BLE001  whatever it is, it is told by the process that waits
        return "raised", traceback.format_exc()
    return "passed", ""


def _wait_for(child: int, answer: IO[bytes]) -> None:
    try:
        with answer:
            data = answer.read()
    except BaseException:  # such as Ctrl-C: nobody would wait for the fork any more
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code or not data:
        ended = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        pytest.fail(f"the process was ended {ended} while this ran: {_noted() or 'the test'}", pytrace=False)
    outcome, message = pickle.loads(data)  # noqa: S301  written by this program's own fork
    if outcome == "skipped":
        pytest.skip(message)
    if outcome != "passed":
        pytest.fail(message, pytrace=False)


def _noted() -> str:
    if _note is None:
        return ""
    length = int.from_bytes(_note[:2], "little")
    return _note[2 : 2 + length].decode(errors="replace")


def _forbid_core_dumps() -> None:
    """A crash is expected here, and told: nobody needs its memory."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
