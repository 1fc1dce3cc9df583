"""The lines of a log file of any size: encodings, line ends, colors and broken bytes, in bounded memory.

PowerShell redirects to UTF-16, Windows writes CRLF, progress bars end lines with CR only, polygraphy and CI services
write terminal colors, and a log that was cut off ends inside a character. None of this is an error.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from typing import BinaryIO

from dryfit.attrs_classes import frozen

CHUNK = 1 << 18
"""Bytes that are read at a time."""

LONGEST_LINE = 1 << 20
"""Characters of a line that are kept. TensorRT 7 lists all layers in one line, of some 100 KiB for large networks."""

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_HEAD = 64
"""Bytes that show the encoding. Logs begin with ASCII; later lines may have been appended in another encoding."""
_MOSTLY = 0.4
"""Share of zero bytes at even or odd places from which a file without a mark counts as UTF-16."""

_LINE_END = re.compile(r"\r\n|\n|\r")
_COLORS = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # control sequences
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # window titles and links
    r"|\x1b[@-Z\\-_]"
)
_BARE_COLORS = re.compile(r"\[(?:\d{1,3};)*\d{1,3}m")
"""Colors whose escape character was lost when the log was copied."""
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff]")


@frozen
class RawLine:
    """A line of a file.

    Attributes:
        number: number of the line, from 1.
        text: the line without colors, control characters and its end.
        is_cut: whether the line was longer than what is kept.
    """

    number: int
    text: str
    is_cut: bool = False


def encoding_of(head: bytes) -> str:
    """Return the encoding of a file that starts with these bytes: UTF-8 or UTF-16.

    Example:
        >>> encoding_of("Layers".encode("utf-16"))
        'utf-16-le'
    """
    for mark, encoding in _BYTE_ORDER_MARKS:
        if head.startswith(mark):
            return encoding
    pairs = max(len(head) // 2, 1)
    if head[1::2].count(0) / pairs > _MOSTLY:
        return "utf-16-le"
    if head[0::2].count(0) / pairs > _MOSTLY:
        return "utf-16-be"
    return "utf-8"


def read_lines(
    file: BinaryIO, *, encoding: str | None = None, watch: Callable[[int], None] | None = None
) -> Iterator[RawLine]:
    """Iterate over the lines of a file that is opened for reading bytes.

    Args:
        file: the file. It is read once, from its position on, so that it can also be a pipe.
        encoding: its encoding; None to find it.
        watch: called with the number of bytes read so far, after each chunk.
    """
    chunk = file.read(CHUNK)
    decoder = codecs.getincrementaldecoder(encoding or encoding_of(chunk[:_HEAD]))(errors="replace")
    number, pending, dropped, size = 0, "", False, 0
    while True:
        size += len(chunk)
        if watch is not None:
            watch(size)
        text = pending + decoder.decode(chunk, final=not chunk)
        # A CR at the end may be half of a CRLF.
        held = "\r" if chunk and text.endswith("\r") else ""
        *lines, pending = _LINE_END.split(text.removesuffix(held) if held else text)
        for line in lines:
            number += 1
            yield _line(number, line, is_cut=dropped)
            dropped = False
        pending += held
        if len(pending) > LONGEST_LINE:
            pending, dropped = pending[:LONGEST_LINE], True
        if not chunk:
            break
        chunk = file.read(CHUNK)
    if pending:
        yield _line(number + 1, pending, is_cut=dropped)


def _line(number: int, text: str, *, is_cut: bool) -> RawLine:
    is_cut = is_cut or len(text) > LONGEST_LINE
    text = text[:LONGEST_LINE]
    if not text.isprintable():
        text = _CONTROLS.sub("", _COLORS.sub("", text))
    if "[" in text:
        text = _BARE_COLORS.sub("", text)
    return RawLine(number, text.rstrip(), is_cut)
