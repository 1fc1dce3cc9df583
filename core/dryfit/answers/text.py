"""Answers as text: lines, tables and lists, as plain lines and as HTML. The command line draws them on a terminal.

Control characters in names from model files are escaped here, so that an answer cannot send codes to a terminal.
"""

from __future__ import annotations

import abc
import html
import importlib
import itertools
import os
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from dryfit.answers.json_data import json_schema, json_text, plain
from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType
from dryfit.short_text import printable, short_name


@frozen
class Line:
    """A line of text.

    Attributes:
        text: text of the line; "" for an empty one.
    """

    text: str = ""


@frozen
class Table:
    """A table.

    Attributes:
        title: title above the table; "" for none.
        columns: column headers.
        rows: cells of any type; see `cell_text`.
        anchors: an HTML id for each row, to which links lead; empty for none.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    anchors: Sequence[str] = ()

    def cells(self) -> list[list[str]]:
        """Return the rows as text."""
        return [[printable(cell_text(value), kept="") for value in row] for row in self.rows]


@frozen
class Entries:
    """A list of named facts, shown only if it is not empty.

    Attributes:
        title: title above the list.
        entries: name, text, and remedy or "".
    """

    title: str
    entries: Sequence[tuple[str, str, str]]

    def lines(self) -> list[str]:
        """Return one indented line per entry, and a second one for the remedy."""
        lines = (
            printable(line, kept="")
            for name, text, remedy in self.entries
            for line in (f"  {name}: {text}", f"    {remedy}" if remedy else "")
        )
        return [line for line in lines if line]


Block = Line | Table | Entries


TABLE_WIDTH = 80
"""Characters of a table's lines; cells are wrapped at spaces to keep to it where the columns stay readable."""
NARROWEST_COLUMN = 24
"""Characters below which no column is wrapped: a narrower one reads worse than a long line."""


def overlay_lines(overlays: Sequence[str]) -> Iterator[Block]:
    """Return a line with the active overlays, if any."""
    if overlays:
        yield Line(f"Overlays: {'; '.join(overlays)}")


def plain_text(blocks: Iterable[Block]) -> str:
    """Return blocks as plain lines, with aligned table columns."""
    return "\n".join(line for block in blocks for line in plain_lines(block))


def plain_lines(block: Block) -> list[str]:
    """Return the lines of one block."""
    match block:
        case Line(text):
            return [printable(text)]
        case Entries(title, entries):
            return [printable(title), *block.lines()] if entries else []
    rows = [list(block.columns), *block.cells()]
    widths = _column_widths(rows)
    lines = [
        "  ".join(part.ljust(width) for part, width in zip(parts, widths, strict=True))
        for row in rows
        for parts in itertools.zip_longest(*map(_wrapped, row, widths), fillvalue="")
    ]
    return [*filter(None, [printable(block.title)]), *(f"  {line.rstrip()}" for line in lines)]


def _column_widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the width of each column: its widest cell, or less if the table is too wide and cells can wrap."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    words = [[word for cell in column for word in (*cell.split(" "), "")] for column in zip(*rows, strict=True)]
    least = [max(*map(len, column), min(width, NARROWEST_COLUMN)) for column, width in zip(words, widths, strict=True)]
    excess = 2 * len(widths) + sum(widths) - TABLE_WIDTH
    while excess > 0:
        # The widest columns that can be wrapped give together, down to the next one, so that they end up alike.
        wrappable = [index for index, width in enumerate(widths) if width > least[index]]
        if not wrappable:
            break
        widest = max(widths[index] for index in wrappable)
        givers = [index for index in wrappable if widths[index] == widest]
        floor = max(
            *(least[index] for index in givers), *(widths[index] for index in wrappable if index not in givers), 0
        )
        given = min(widest - floor, excess // len(givers))
        for index in givers if given else givers[-excess:]:
            widths[index] -= max(given, 1)
            excess -= max(given, 1)
    return widths


def _wrapped(cell: str, width: int) -> list[str]:
    return [cell] if len(cell) <= width else textwrap.wrap(cell, width, break_long_words=False, break_on_hyphens=False)


def html_text(blocks: Iterable[Block]) -> str:
    """Return blocks as HTML, for notebooks."""
    return "<div>" + "\n".join(map(_html, blocks)) + "</div>"


def _html(block: Block) -> str:
    match block:
        case Line(text):
            return f"<p>{html.escape(printable(text))}</p>" if text else ""
        case Entries(title, entries):
            items = (
                f"<li><b>{_cell(name)}</b>: {_cell(text)}{f'<br><i>{_cell(remedy)}</i>' if remedy else ''}</li>"
                for name, text, remedy in entries
            )
            return f"<p>{_cell(title)}</p><ul>{''.join(items)}</ul>" if entries else ""
    head = "".join(f"<th>{_cell(column)}</th>" for column in block.columns)
    ids = [f' id="{html.escape(one)}"' for one in block.anchors] or [""] * len(block.rows)
    rows = "".join(
        f"<tr{anchor}>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>"
        for anchor, row in zip(ids, block.cells(), strict=True)
    )
    return f"<table><caption>{_cell(block.title)}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _cell(text: str) -> str:
    return html.escape(printable(text, kept=""))


def cell_text(value: object) -> str:
    """Format a table cell: `-` for None, `1x3x8x8` for a shape, names separated by commas."""
    match value:
        case None:
            return "-"
        case tuple() | list():
            is_shape = all(isinstance(part, int) for part in value)
            return ("x" if is_shape else ", ").join(map(str, value))
        case _:
            return str(value)


TABLE_NAME = 48
"""Characters of a name in a table; verbose text and JSON have the whole names."""


def table_name(name: str) -> str:
    """Shorten a name for a table by cutting its middle."""
    return short_name(name, TABLE_NAME)


def type_text(words: str) -> str:
    """Replace data type names with the usual ones: `GPU FP32 LINEAR` for `GPU FLOAT LINEAR`."""
    return " ".join(DataType[word].text if word in DataType.__members__ else word for word in words.split(" "))


def device_text(device: str, *variant: str) -> str:
    """Format a device with its platform and software version: `DLA (orin-nx-16 10.3)`, or `CPU` if it has none."""
    known = " ".join(filter(None, variant))
    return f"{device} ({known})" if known else device


def bytes_text(size: int) -> str:
    """Format a size in bytes: `0 B`, `1.5 KiB`, `12.0 MiB`."""
    if size < 1024:
        return f"{size} B"
    value = float(size)
    for unit in ("KiB", "MiB"):
        value /= 1024
        if value < 1024:
            return f"{value:.1f} {unit}"
    return f"{value / 1024:.1f} GiB"


def scale_text(scale: float | None) -> str:
    """Format a scale for a table."""
    return f"{scale:.7g}" if scale else "none"


# Answers --------------------------------------------------------------------------------------------------------------


class Answer(abc.ABC):
    """The base class of answers: frozen attrs records that define their JSON fields.

    Derive with `@attrs.frozen(repr=False)`, so that the short representation defined here is used.
    """

    COMMAND: ClassVar[str]
    """The command that prints the answer."""

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain dictionaries, lists, strings and numbers, as `--json` prints it."""
        data: dict[str, Any] = plain(self)
        return data

    def to_json(self) -> str:
        """Return the answer as one JSON document."""
        return json_text(self.to_dict())

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of `to_json`."""
        return json_schema(cls, f"dryfit {cls.COMMAND} --json")

    @abc.abstractmethod
    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:
        """Return the answer as lines, tables and lists, as the command prints it."""

    @abc.abstractmethod
    def summary_line(self) -> str:
        """Return a one-line summary of the answer."""

    def outcome(self) -> Iterator[Block]:
        """Return the lines that `--quiet` prints."""
        yield Line(self.summary_line())

    def __str__(self) -> str:
        return plain_text(self.blocks())

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.summary_line()}>"

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write the answer as one HTML file with tables and pictures: the parts of a report for which it is enough.

        `dryfit.report` answers all questions about a model in one file.

        Raises:
            ConfigError: The file cannot be written, or the packages that draw pictures are not installed.
        """
        _reports().write_answer(self, path)

    def _repr_html_(self) -> str:
        found: str = _reports().answer_html(self)
        return found


def _reports() -> Any:
    """What makes reports of answers stands above them; it is loaded when an answer is shown."""
    return importlib.import_module("dryfit.reporting.answer_parts")
