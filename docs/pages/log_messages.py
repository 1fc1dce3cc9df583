"""The page of the messages that `dryfit explain-log` knows, from the table that it reads logs with."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.board.logs.message import (
    CONSEQUENCE,
    FALLBACK,
    MEMORY,
    NOTE,
    PROBLEM,
    REASON,
    REFUSAL,
    KnownMessage,
)
from dryfit.board.logs.messages import MESSAGES

_HEAD = """# Messages of TensorRT's logs

Written by `make docs` from the table that `dryfit explain-log` reads logs with.

Each message was read in a public log or in a document, which its last column names; where none was found, the column
states that. *Rules* are ids for
`dryfit explain-rule`. A warning or an error of a log that is not listed here is reported as not known.
"""

_COLUMNS = "| message | TensorRT | meaning | rules | what helps | source |\n|---|---|---|---|---|---|\n"

_SECTIONS = (
    ("Layers that leave the DLA", (FALLBACK, REFUSAL)),
    ("Reasons, which precede those lines", (REASON,)),
    ("Errors and warnings", (PROBLEM,)),
    ("Consequences of errors before them", (CONSEQUENCE,)),
    ("Remarks", (NOTE,)),
    ("Memory", (MEMORY,)),
)


def log_messages_page() -> str:
    """The page of all known messages, in Markdown."""
    return _HEAD + "".join(
        _section(title, [one for one in MESSAGES if one.role in roles]) for title, roles in _SECTIONS
    )


def _section(title: str, messages: Sequence[KnownMessage]) -> str:
    head = (
        f"\n## {title}\n\n| message | TensorRT | meaning | rules | what helps | source |\n|---|---|---|---|---|---|\n"
    )
    return head + "".join(map(_row, messages))


def _row(message: KnownMessage) -> str:
    rules = [*message.rules, *(rule for several in message.operation_rules.values() for rule in several)]
    cells = (
        f"`{message.id}`: {message.anchor.strip() or 'several'}",
        message.versions,
        message.meaning,
        ", ".join(f"`{rule}`" for rule in rules),
        message.remedy,
        _source(message.source),
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def _source(text: str) -> str:
    """Return sources with links whose text is short."""
    parts = []
    for part in text.split(", "):
        owner, _, number = part.removeprefix("https://github.com/").partition("/issues/")
        parts.append(f"[{owner}#{number}]({part})" if number else part)
    return ", ".join(parts)
