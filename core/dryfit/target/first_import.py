"""Importing a module of another package for the first time, so that it cannot take the answer of a command with it.

What the module prints goes to stderr: stdout may be the answer of a command, which programs read. Where it ends the
interpreter (`os._exit`, `os.abort`), that becomes an exception. What no exception can stand for, such as a fault in
native code, ends the process; a small process that waits for that then says whose fault it was.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

_SHELL = Path("/bin/sh")
_LAST_WORDS = 'read -r word; [ "$word" = alive ] || printf "%s\\n" "$1" >&2'
"""Reads a word when the import is over; where the pipe ends without it, the process that imports has died."""

_is_watched = False
_packages: dict[str, str] = {}


class InterpreterEndedError(BaseException):
    """Raised in place of ending the interpreter. It is no `Exception`, so that a module is unlikely to hide it."""


def watch_imports(*, on: bool) -> None:
    """Say who is to blame where an import of another package ends the process; for commands."""
    global _is_watched  # noqa: PLW0603  a property of the process, which its entry point sets once
    _is_watched = on


@contextlib.contextmanager
def first_import(module: str, last_words: str = "") -> Iterator[None]:
    """Import a module of another package, or a module that it declares, inside.

    Args:
        module: dotted name.
        last_words: what is printed if the process ends during the import; "" for what was said of another module of its
            top package, and for nothing where none was imported so.
    """
    package = module.partition(".")[0]
    words = _packages.setdefault(package, last_words) if last_words else _packages.get(package, "")
    with _stdout_to_stderr(), _kept_alive(), _watched(words):
        yield


@contextlib.contextmanager
def _stdout_to_stderr() -> Iterator[None]:
    """Send to stderr what is written to stdout, by Python and by anything else."""
    try:
        sys.stdout.flush()
        saved = os.dup(1)
        os.dup2(2, 1)
    except (OSError, ValueError, AttributeError):  # there is no stdout or stderr to speak of
        with contextlib.redirect_stdout(sys.stderr):
            yield
        return
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)


@contextlib.contextmanager
def _kept_alive() -> Iterator[None]:
    """Raise where this thread of this process ends the interpreter. Children that it forks may end as they like."""
    process, thread = os.getpid(), threading.get_ident()
    ends: dict[str, Callable[..., NoReturn]] = {"_exit": os._exit, "abort": os.abort}

    def ending(name: str, end: Callable[..., NoReturn]) -> Callable[..., NoReturn]:
        def raise_instead(*arguments: Any) -> NoReturn:
            if (os.getpid(), threading.get_ident()) != (process, thread):
                end(*arguments)
            raise InterpreterEndedError(f"os.{name}({', '.join(map(str, arguments))})")

        return raise_instead

    for name, end in ends.items():
        setattr(os, name, ending(name, end))
    try:
        yield
    finally:
        for name, end in ends.items():
            setattr(os, name, end)


@contextlib.contextmanager
def _watched(words: str) -> Iterator[None]:
    """Have a process of a few kilobytes print words where this one dies inside."""
    if not (words and _is_watched and hasattr(os, "posix_spawn") and _SHELL.exists()):
        yield
        return
    reading, writing = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, reading, 0), (os.POSIX_SPAWN_DUP2, 2, 1)]
    watcher = os.posix_spawn(_SHELL, [str(_SHELL), "-c", _LAST_WORDS, "sh", words], os.environ, file_actions=actions)
    os.close(reading)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # somebody may have ended or reaped it
            os.write(writing, b"alive\n")
        os.close(writing)
        with contextlib.suppress(OSError):
            os.waitpid(watcher, 0)
