"""Where the log goes while a command runs."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator

from dryfit.cli.console import print_note
from dryfit.short_text import grouped_warnings, printable


class PrintableFormatter(logging.Formatter):
    """Lines of the log whose control characters are escaped."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        return printable(super().format(record))


@contextlib.contextmanager
def log_to_stderr(level: int | None) -> Iterator[None]:
    """Send dryfit's log to stderr, one plain line a message; None keeps it silent, for commands that tell it better."""
    handler: logging.Handler = logging.NullHandler() if level is None else logging.StreamHandler(sys.stderr)
    handler.setFormatter(PrintableFormatter())
    with _log_to(handler, logging.CRITICAL if level is None else level):
        yield


@contextlib.contextmanager
def build_log(*, verbose: bool = False) -> Iterator[None]:
    """Send the builder's log to stderr: all of it where `verbose`, else its warnings, alike ones together at the end.

    The builder warns of each layer that falls back, so that a large network has hundreds that say the same.
    """
    if verbose:
        with log_to_stderr(logging.INFO):
            yield
        return
    kept = _KeptWarnings()
    try:
        with _log_to(kept, logging.WARNING):
            yield
    finally:
        for line in grouped_warnings(kept.texts):
            print_note(line)


@contextlib.contextmanager
def _log_to(handler: logging.Handler, level: int) -> Iterator[None]:
    logger = logging.getLogger("dryfit")
    before, propagated = logger.level, logger.propagate
    # A command reports failures of plugins once, when it ends.
    handler.addFilter(lambda record: record.name != "dryfit.plugins")
    logger.addHandler(handler)
    logger.propagate = False
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
        logger.propagate = propagated


class _KeptWarnings(logging.Handler):
    """Keeps the messages."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one."""
        self.texts.append(record.getMessage())
