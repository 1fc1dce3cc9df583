"""The table of all known messages, and the search for the one that a line is."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dryfit.attrs_classes import frozen
from dryfit.board.logs.build_messages import BUILD_MESSAGES, MEMORY_MESSAGES
from dryfit.board.logs.dla_messages import FALLBACK_MESSAGES, PLACEMENT_NOTES, REASON_MESSAGES
from dryfit.board.logs.message import MEMORY, NOTE, KnownMessage
from dryfit.board.logs.prefixes import ERROR, VERBOSE, WARNING, LogLine

LONGEST_TEXT = 8192
"""Characters of a line that are compared with messages: the longest known one has some 300 without its names."""
_LAST = "reason.other"
MESSAGES: Sequence[KnownMessage] = (
    *FALLBACK_MESSAGES,
    *(one for one in REASON_MESSAGES if one.id != _LAST),
    *BUILD_MESSAGES,
    *PLACEMENT_NOTES,
    *MEMORY_MESSAGES,
    *(one for one in REASON_MESSAGES if one.id == _LAST),
)
"""The messages in the order in which lines are compared with them."""

_ANCHORS = tuple(dict.fromkeys(one.anchor for one in MESSAGES if len(one.anchor) > 3))
_VERBOSE_ANCHORS = (
    "DLA",
    "dlaContext",
    *dict.fromkeys(one.anchor for one in MESSAGES if one.role in (NOTE, MEMORY) and "DLA" not in one.anchor),
)
"""Verbose lines, which are most of a long log, are only messages with one of these words."""


@frozen
class FoundMessage:
    """A line that is a known message.

    Attributes:
        message: the message.
        line: the line.
        layer: layer that the line names; "" for none.
        kind: TensorRT's type of that layer; "" if the line does not show it.
        operation: operation that the line names, or the reason in its own words if nothing else is known; "" for none.
        groups: everything that the pattern found, by name.
    """

    message: KnownMessage
    line: LogLine
    layer: str = ""
    kind: str = ""
    operation: str = ""
    groups: dict[str, str] = attrs.field(factory=dict)


def find_message(line: LogLine) -> FoundMessage | None:
    """Return the known message that a line is; None for any other line."""
    text = line.text[:LONGEST_TEXT]
    anchors = _VERBOSE_ANCHORS if line.severity == VERBOSE else _ANCHORS
    if line.severity not in (ERROR, WARNING) and not _has_one(anchors, text):
        return None
    for message in MESSAGES:
        if message.anchor not in text:
            continue
        if message.id == _LAST and line.severity not in (ERROR, WARNING):
            continue
        found = message.pattern.search(text)
        if found is not None:
            groups = {name: value.strip() for name, value in found.groupdict().items() if value}
            return FoundMessage(
                message,
                line,
                groups.get("layer", ""),
                groups.get("kind", ""),
                groups.get("operation", "") or (groups["text"].rstrip(".") if message.id == _LAST else ""),
                groups,
            )
    return None


def _has_one(words: Sequence[str], text: str) -> bool:
    for word in words:  # noqa: SIM110  `any` takes twice the time
        if word in text:
            return True
    return False


def has_own_words(message_id: str) -> bool:
    """Whether lines with this message contain words whose meaning is not known, so that they should be shown."""
    message = message_named(message_id)
    return message.role != MEMORY and "text" in message.pattern.groupindex


def message_named(message_id: str) -> KnownMessage:
    """Return the message with this id, which is in the table."""
    return next(one for one in MESSAGES if one.id == message_id)
