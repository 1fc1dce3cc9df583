"""The options of a trtexec command line as text: the list of all, and the sections at the start of a log."""

from __future__ import annotations

from collections.abc import Iterator

from dryfit.board.trtexec_arguments import TrtexecArguments
from dryfit.board.trtexec_options import TRTEXEC_OPTIONS, OptionAnswer, OptionGroup
from dryfit.board.versions import Version

_WIDTH = 36
"""Columns of an option with its value in the list."""


def help_lines(version: Version) -> Iterator[str]:
    """Return the list of all options of a version, by group, with what is different here."""
    for group in OptionGroup:
        yield f"=== {group.value} Options ==="
        for option in TRTEXEC_OPTIONS.values():
            if option.group is not group or version not in option.versions:
                continue
            head = ", ".join((f"{option.name}={option.value}" if option.value else option.name, *option.aliases))
            default = f" (default = {option.default})" if option.default else ""
            here = "" if option.answer is OptionAnswer.WORKS else f" [{option.answer}: {option.why}]"
            yield f"  {head:<{_WIDTH}} {option.text}{default}{here}"
        yield ""


def given_option_lines(read: TrtexecArguments) -> Iterator[str]:
    """Return the sections of a log that show the options: a line `name: value` for each that is given or has a default.

    Tools that read logs of trtexec find the sections by their titles.
    """
    for group in OptionGroup:
        yield f"=== {group.value} Options ==="
        for option in TRTEXEC_OPTIONS.values():
            is_usual = option.answer is OptionAnswer.WORKS and not option.default.startswith("--")
            if option.group is not group:
                continue
            if read.has(option.name):
                yield f"{option.name[2:]}: {read.text(option.name) or 'Enabled'}"
            elif option.default and is_usual and read.version in option.versions:
                yield f"{option.name[2:]}: {option.default}"
    for index, profile in enumerate(read.profiles):
        yield f"=== Optimization Profile {index} ==="
        yield from (f"{name[2:]}: {value}" for name, value in profile.items())
    yield ""
