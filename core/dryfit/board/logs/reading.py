"""Read a whole log into one record: layers that fell back and why, lists of layers, settings, memory and problems.

The record's size depends on the layers and on the different messages of a log, not on its length: repeated lines are
counted, and each kind of entry has a limit beyond which entries are only counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import attrs

from dryfit.attrs_classes import define
from dryfit.board.logs.layer_lists import LayerLists
from dryfit.board.logs.message import FALLBACK, MEMORY, REASON, REFUSAL, KnownMessage
from dryfit.board.logs.messages import FoundMessage, find_message
from dryfit.board.logs.prefixes import ERROR, UNSTATED, WARNING, LogLine, log_line
from dryfit.board.logs.raw_lines import RawLine
from dryfit.board.logs.settings import LogSettings

MOST_LAYERS = 200_000
"""Layers that fell back, of which each is kept."""
MOST_UNKNOWN = 2_000
"""Different unknown messages that are kept."""
MOST_NAMES = 1_000
"""Names of tensors or layers that are kept for one message."""
LONGEST_MESSAGE = 400
"""Characters of an unknown message that are kept."""

_VARYING = re.compile(r"'[^']*'|\"[^\"]*\"|\S*/\S+|0x[0-9a-fA-F]+|\d+(?:\.\d+)?|\(Unnamed Layer\* \d+\) \[\w+\]")
_TROUBLE = re.compile(r"\b(?:error|assert\w*|fail\w*|exception|abort\w*|cannot|unsupported)\b", re.IGNORECASE)
_ABOUT_BUILDER = re.compile(r"TRT|TensorRT|\bDLA|nvinfer", re.IGNORECASE)
_SEPARATOR = re.compile(r"^[-=*# ]*$")


@define
class FallenLayer:
    """A layer that the log moves from the DLA to the GPU, or for which the build fails.

    Attributes:
        name: name of the layer in the log.
        kind: TensorRT's type of the layer; "" if the log does not show it.
        line: first line about it.
        messages: messages about it, in the order of the log, with the operation that each names ("" for none).
        is_refused: whether the build fails because of it.
    """

    name: str
    kind: str
    line: int
    messages: dict[tuple[str, str], KnownMessage] = attrs.field(factory=dict)
    is_refused: bool = False


@define
class MessageCount:
    """A known message with its occurrences.

    Attributes:
        message: the message.
        text: its first line.
        line: number of that line.
        severity: severity of that line.
        count: number of lines.
        names: layers or tensors that the lines name, and values such as memory sizes.
    """

    message: KnownMessage
    text: str
    line: int
    severity: str
    count: int = 0
    names: dict[str, None] = attrs.field(factory=dict)
    values: dict[str, str] = attrs.field(factory=dict)


@define
class UnknownCount:
    """Warnings or errors that no known message matches, and that differ only in names and numbers.

    Attributes:
        text: the first of the lines.
        line: its number.
        severity: its severity; "" for a line without one that reports a failure.
        count: number of lines.
    """

    text: str
    line: int
    severity: str
    count: int = 1


@define
class BoardLog:
    """What a log shows.

    Attributes:
        lines: number of lines.
        known_lines: number of lines that were understood.
        cut_lines: number of lines that were longer than what is kept.
        settings: what it shows about the build.
        lists: the lists of layers by device.
        fallen: layers that fell back, by name.
        messages: known messages other than those about single layers, by id.
        unknown: unknown warnings and errors, by what is common to them.
        dropped: number of entries that were not kept because there were too many.
        last_text: last line that is not empty.
    """

    lines: int = 0
    known_lines: int = 0
    cut_lines: int = 0
    settings: LogSettings = attrs.field(factory=LogSettings)
    lists: LayerLists = attrs.field(factory=LayerLists)
    fallen: dict[str, FallenLayer] = attrs.field(factory=dict)
    messages: dict[str, MessageCount] = attrs.field(factory=dict)
    unknown: dict[tuple[str, str], UnknownCount] = attrs.field(factory=dict)
    dropped: int = 0
    _reasons: list[FoundMessage] = attrs.field(factory=list)
    _named_reasons: dict[str, list[FoundMessage]] = attrs.field(factory=dict)

    def take(self, raw: RawLine) -> None:
        """Take the next line."""
        self.lines = raw.number
        self.cut_lines += raw.is_cut
        line = log_line(raw.number, raw.text)
        if self.lists.take(line):
            self.known_lines += 1
            return
        if not line.text:
            return
        found = find_message(line)
        if found is not None:
            self.known_lines += 1
            self._take_message(found)
        elif self.settings.take(line):
            self.known_lines += 1
        else:
            self._take_unknown(line)

    def finish(self) -> None:
        """Take what the end of the log leaves open."""
        self.lists.finish()
        for found in self._reasons:
            self._count(found)
        self._reasons = []
        for name, reasons in self._named_reasons.items():
            fallen = self.fallen.get(name)
            for found in reasons:
                if fallen is None:
                    self._count(found)
                else:
                    fallen.messages.setdefault((found.message.id, found.operation), found.message)

    def _take_message(self, found: FoundMessage) -> None:
        role = found.message.role
        if role == REASON:
            self._take_reason(found)
        elif role in (FALLBACK, REFUSAL):
            self._take_fallen(found)
        else:
            self._count(found)

    def _take_reason(self, found: FoundMessage) -> None:
        """Keep a reason for the layer that it names, or for the one that the next line names."""
        if found.layer and found.layer not in self._named_reasons and len(self._named_reasons) >= MOST_LAYERS:
            self.dropped += 1
            return
        reasons = self._named_reasons.setdefault(found.layer, []) if found.layer else self._reasons
        if not any((one.message.id, one.operation) == (found.message.id, found.operation) for one in reasons):
            reasons.append(found)

    def _take_fallen(self, found: FoundMessage) -> None:
        layer = self.fallen.get(found.layer)
        if layer is None:
            if len(self.fallen) >= MOST_LAYERS:
                self.dropped += 1
                return
            layer = self.fallen[found.layer] = FallenLayer(found.layer, found.kind, found.line.number)
        layer.kind = layer.kind or found.kind
        layer.is_refused |= found.message.role == REFUSAL
        reasons = [*self._named_reasons.pop(found.layer, []), *self._reasons]
        self._reasons = []
        for one in (*reasons, found):
            layer.messages.setdefault((one.message.id, one.operation), one.message)
        if found.message.id == "fallback.loadable_limit":
            self._count(found)

    def _count(self, found: FoundMessage) -> None:
        counted = self.messages.get(found.message.id)
        if counted is None:
            line = found.line
            counted = self.messages[found.message.id] = MessageCount(
                found.message, line.text[:LONGEST_MESSAGE], line.number, line.severity
            )
        counted.count += 1
        name = found.layer or found.groups.get("tensor", "")
        if found.message.role == MEMORY:
            name = found.groups.get("text", "") or found.message.id
            counted.values[name] = memory_text(found)
        elif found.groups.get("limit") or found.groups.get("found"):
            counted.values |= {key: found.groups[key] for key in ("found", "limit") if key in found.groups}
        if name and len(counted.names) < MOST_NAMES:
            counted.names[name] = None

    def _take_unknown(self, line: LogLine) -> None:
        text = line.text[:LONGEST_MESSAGE]
        is_trouble = line.severity in (ERROR, WARNING)
        if not is_trouble and line.severity == UNSTATED:
            is_trouble = bool(_TROUBLE.search(text) and _ABOUT_BUILDER.search(text))
        if not is_trouble or _SEPARATOR.match(text):
            return
        key = line.severity, _VARYING.sub("", text)
        counted = self.unknown.get(key)
        if counted is not None:
            counted.count += 1
        elif len(self.unknown) < MOST_UNKNOWN:
            self.unknown[key] = UnknownCount(text, line.number, line.severity)
        else:
            self.dropped += 1


def memory_text(found: FoundMessage) -> str:
    """Return the sizes that a line about memory shows."""
    groups = found.groups
    if "sram" in groups:
        return f"managed SRAM {groups['sram']}, local DRAM {groups['local']}, global DRAM {groups['dram']}"
    return groups.get("found", "")


def read_log(lines: Iterable[RawLine]) -> BoardLog:
    """Read the lines of a log."""
    log = BoardLog()
    for line in lines:
        log.take(line)
    log.finish()
    return log
