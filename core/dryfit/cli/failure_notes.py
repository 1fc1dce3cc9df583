"""What a command tells at its end of plugins that it could not use, and how long it waits for them."""

from __future__ import annotations

import os
from collections.abc import Collection

from dryfit.cli.console import print_note
from dryfit.errors import ConfigError
from dryfit.plugins import registry
from dryfit.plugins.discovery import PASSES
from dryfit.plugins.failures import DOCTOR, PluginFailure
from dryfit.plugins.loading import TIMEOUT_VARIABLE

SECONDS = 10.0
"""CPU time that the import of a plugin may take. Our choice: the slowest of ours takes 2 s on a small machine."""


def seconds_allowed() -> float:
    """CPU time that the import of another package's plugin may take, in seconds.

    Raises:
        ConfigError: the environment variable is no number larger than 0.
    """
    text = os.environ.get(TIMEOUT_VARIABLE, "")
    try:
        seconds = float(text or SECONDS)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ConfigError(
            "The import timeout of a plugin must be a number of seconds",
            where=f"environment variable {TIMEOUT_VARIABLE}",
            found=repr(text),
            allowed="more than 0",
            remedy="Set it to a number such as 30, or unset it",
        )
    return seconds


def print_failure_notes(told: Collection[PluginFailure], *, debug: bool) -> None:
    """Tell on stderr of each plugin that could not be used, without those that were told already.

    Args:
        told: what needs no note.
        debug: whether remedies and tracebacks are told as well.
    """
    untold = [failure for failure in registry.failures() if failure not in told]
    if untold and debug:
        from dryfit.answers.plugins import failure_text  # only where it is needed: every command comes by here

        for failure in untold:
            print_note(f"Skipped: {failure_text(failure)}")
        return
    for failure in untold:
        print_note(_note(failure))


def _note(failure: PluginFailure) -> str:
    """One line. What fails while a network is looked at, `dryfit plugins doctor` cannot find."""
    more = "`dryfit --debug` shows more" if failure.hook or failure.group == PASSES else f"See `{DOCTOR}`"
    text = str(failure)
    return f"Skipped: {text}{'' if text.endswith('?') else '.'} {more}."
