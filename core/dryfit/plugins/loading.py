"""Importing what one entry point names, so that nothing a stranger's module does can end the program.

What may go wrong, and becomes one sentence: the value is malformed, the module is not there, raises, exits, is written
for a newer plugin interface, or does not come to an end within the time that the command line allows.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import EntryPoint
from typing import Any, NoReturn

from dryfit.errors import DryfitError, PluginError, UnknownNameError, failure_line
from dryfit.plugins.discovery import API_LEVEL, PluginOwner, module_of, owner_of, switching_off
from dryfit.target.first_import import InterpreterEndedError, first_import

LEVEL_NAME = "DRYFIT_API_LEVEL"
TIMEOUT_VARIABLE = "DRYFIT_PLUGIN_TIMEOUT"

WAITING_FACTOR = 6
"""An import that waits is stopped after this many times the CPU time that it may take. Our choice: a sound import on a
machine that is busy with several other processes still ends in time."""

_seconds_allowed: float | None = None


class ImportTookTooLongError(BaseException):
    """Raised inside a module whose import takes too long. It is no `Exception`, so that the module cannot hide it."""


def allow_seconds(seconds: float | None) -> None:
    """Let the import of a plugin of another package take so many seconds of CPU time at most; None for any time.

    Only the main thread of a POSIX system can interrupt an import; elsewhere this changes nothing.
    """
    global _seconds_allowed  # noqa: PLW0603  a property of the process, which its entry point sets once
    _seconds_allowed = seconds


def load(entry: EntryPoint, prepare: Callable[[Any], Any]) -> Any:
    """What an entry point names, after `prepare` has looked at it.

    Another package is imported as `dryfit.target.first_import` says.

    Raises:
        KeyboardInterrupt: the user stopped the program; a note says which plugin was being loaded.
        BaseException: whatever the module or `prepare` raises, `SystemExit` included.
    """
    owner = owner_of(entry)
    try:
        with (
            _limited(_seconds_allowed if owner.is_foreign else None),
            first_import(module_of(entry.value) or "", _last_words(owner))
            if owner.is_foreign
            else contextlib.nullcontext(),
        ):
            loaded = entry.load()
            _require_level(entry)
            return prepare(loaded)
    except KeyboardInterrupt as stopped:
        stopped.add_note(f"While loading the plugin {owner}. {switching_off(owner)} switches it off.")
        raise


def _last_words(owner: PluginOwner) -> str:
    return (
        f"Error: the plugin {owner} ended dryfit while it was imported. {switching_off(owner)} switches it off; "
        "`dryfit plugins doctor` shows more"
    )


def explained(entry: EntryPoint, error: BaseException) -> tuple[str, str]:
    """Why loading failed, in one line, and what can be done; "" where that is nothing special."""
    if module_of(entry.value) is None and isinstance(error, AttributeError | TypeError | ValueError):
        text = f"{entry.name!r} = {entry.value!r}"
        return f"malformed entry point: {text}", "It must be written as `name = module:attribute`"
    try:
        # An import that fails is often of what only a newer dryfit has: then the level says more than the error. Python
        # has forgotten a module that failed, but the error's traceback still has its names.
        frames = [frame.f_globals for frame, _ in traceback.walk_tb(error.__traceback__)]
        _require_level(entry, {names.get("__name__", ""): names for names in frames})
    except PluginError as newer:
        error = newer
    if isinstance(error, ImportTookTooLongError):
        off = switching_off(owner_of(entry))
        return str(error), f"Report it to its maintainers; {off} disables it, {TIMEOUT_VARIABLE} allows more time"
    if isinstance(error, ModuleNotFoundError) and error.name:
        return (
            f"ModuleNotFoundError: {error}",
            f"Install the package that provides the module {error.name}, or reinstall the package",
        )
    if isinstance(error, InterpreterEndedError):
        return f"it ends the interpreter while it is imported ({error})", ""
    if isinstance(error, SystemExit):
        return f"it exits while it is imported (SystemExit: {error})", ""
    return described(error)


def described(error: BaseException) -> tuple[str, str]:
    """An exception in one line, and what can be done about it; "" where it does not say."""
    if isinstance(error, UnknownNameError):
        return str(error), ""  # the closest name belongs to what was found
    if isinstance(error, DryfitError):
        return error.description, error.remedy or ""
    return failure_line(error), ""


def _require_level(entry: EntryPoint, failed: Mapping[str, Mapping[str, Any]] | None = None) -> None:
    """Refuse a module that states a newer level of the plugin interface.

    Args:
        entry: names the module.
        failed: name to names in it, for modules whose import failed.

    Raises:
        PluginError: the module or its top package states a larger level, or no number.
    """
    module = module_of(entry.value) or ""
    for name in (module, module.partition(".")[0]):
        level = vars(sys.modules[name]).get(LEVEL_NAME) if name in sys.modules else None
        level = (failed or {}).get(name, {}).get(LEVEL_NAME) if level is None else level
        if level is None:
            continue
        if not isinstance(level, int):
            raise PluginError(
                f"{LEVEL_NAME} must be a whole number",
                where=f"module {name}",
                found=repr(level),
                remedy=f"Set {LEVEL_NAME} to the API level that the module needs, such as {API_LEVEL}",
            )
        if level > API_LEVEL:
            raise PluginError(
                f"needs dryfit with plugin API level {level}; this one has {API_LEVEL}; upgrade dryfit",
                remedy="pip install --upgrade dryfit",
            )


def took_too_long(seconds: float) -> str:
    """What is said of an import that was stopped."""
    return f"its import takes longer than {seconds:g} s of CPU time, or {WAITING_FACTOR * seconds:g} s"


@contextlib.contextmanager
def _limited(seconds: float | None) -> Iterator[None]:
    """Raise in the main thread when the time is over, and each second after that, should the first be swallowed.

    The time is the process's CPU time, and `WAITING_FACTOR` times as long by the clock for an import that waits.
    """
    if seconds is None or not hasattr(signal, "setitimer") or threading.current_thread() != threading.main_thread():
        yield
        return

    def stop(signal_number: int, frame: Any) -> NoReturn:  # noqa: ARG001  the signature of a signal handler
        raise ImportTookTooLongError(took_too_long(seconds))

    limits = (
        (signal.SIGPROF, signal.ITIMER_PROF, seconds),
        (signal.SIGALRM, signal.ITIMER_REAL, WAITING_FACTOR * seconds),
    )
    before = [
        (number, signal.signal(number, stop), timer, signal.setitimer(timer, limit, 1))
        for number, timer, limit in limits
    ]
    try:
        yield
    finally:
        for number, handler, timer, left in before:
            signal.setitimer(timer, *left)
            signal.signal(number, handler)
