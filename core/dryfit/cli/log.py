"""Where the log goes while a command runs."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def log_to_stderr(level: int | None) -> Iterator[None]:
    """Send dryfit's log to stderr, one plain line a message; None keeps it silent, for commands that tell it better."""
    logger = logging.getLogger("dryfit")
    handler: logging.Handler = logging.NullHandler() if level is None else logging.StreamHandler(sys.stderr)
    before, propagated = logger.level, logger.propagate
    # A command reports failures of plugins once, when it ends.
    handler.addFilter(lambda record: record.name != "dryfit.plugins")
    logger.addHandler(handler)
    logger.propagate = False
    logger.setLevel(logging.CRITICAL if level is None else level)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
        logger.propagate = propagated
