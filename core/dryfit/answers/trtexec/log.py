"""The log of a trtexec command line: its lines, with what the builder reports."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator

import attrs

from dryfit.attrs_classes import define
from dryfit.short_text import grouped_warnings

INFO, WARNING, ERROR, VERBOSE = "I", "W", "E", "V"
"""Letters of trtexec's log for the severity of a line."""

PLAIN = ""
"""The severity of a line that is printed as it is: trtexec's list of options."""

LogListener = Callable[[str, str], None]
"""Receives the severity and the text of each line as soon as it is known."""


@define(eq=False)
class TrtexecLog:
    """Collects the lines of a run and passes them on.

    Attributes:
        listener: receives each line; None for nobody.
        is_verbose: whether verbose lines are kept.
        lines: severity and text of each line.
    """

    listener: LogListener | None = None
    is_verbose: bool = False
    lines: list[tuple[str, str]] = attrs.field(init=False, factory=list)

    def add(self, severity: str, text: str) -> None:
        """Add a line."""
        if severity == VERBOSE and not self.is_verbose:
            return
        self.lines.append((severity, text))
        if self.listener is not None:
            self.listener(severity, text)

    def info(self, text: str = "") -> None:
        """Add a line of information."""
        self.add(INFO, text)

    def warning(self, text: str) -> None:
        """Add a warning."""
        self.add(WARNING, text)

    def verbose(self, text: str) -> None:
        """Add a line that is kept with `--verbose` only."""
        self.add(VERBOSE, text)

    @contextlib.contextmanager
    def of_builder(self) -> Iterator[None]:
        """Add what dryfit's builder logs: similar warnings are grouped and added at the end."""
        logger, handler = logging.getLogger("dryfit"), _Handler(self)
        level, propagates = logger.level, logger.propagate
        logger.addHandler(handler)
        logger.propagate = False
        logger.setLevel(logging.INFO)
        try:
            yield
        finally:
            logger.removeHandler(handler)
            logger.setLevel(level)
            logger.propagate = propagates
            for line in grouped_warnings(handler.warnings):
                self.warning(line)


class _Handler(logging.Handler):
    """Adds lines of information to a log, and keeps warnings."""

    def __init__(self, log: TrtexecLog) -> None:
        super().__init__()
        self._log = log
        self.warnings: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Take one record; failures of plugins are reported by the command."""
        if record.name == "dryfit.plugins":
            return
        if record.levelno >= logging.WARNING:
            self.warnings.append(record.getMessage())
        else:
            self._log.verbose(record.getMessage())
