"""Output: tables and colours by rich on a terminal, plain lines elsewhere, JSON where it was asked for.

Whatever a command prints goes through here, where control characters in names of strangers are escaped.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

from dryfit.short_text import printable, short_name

json_option: Callable[[Any], Any] = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


def print_json(data: object) -> None:
    """One JSON document, the same bytes for the same data."""
    text = json.dumps(data, indent=2, ensure_ascii=False)
    if not text.isprintable():
        # Only strings hold such characters, besides the lines of the document.
        text = "".join(one if one.isprintable() or one == "\n" else json.dumps(one)[1:-1] for one in text)
    click.echo(text)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table; elsewhere than on a terminal its title and one line a row, columns padded to the widest cell."""
    cells = [[printable(_text(value), kept="") for value in row] for row in rows]
    title = printable(title)
    if sys.stdout.isatty():
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(
            *columns, title=Text(title) if title else None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False
        )
        for row in cells:
            table.add_row(*(Text(cell, style=_style(cell)) for cell in row))
        Console().print(table)
        return
    if title:
        click.echo(title)
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    for row in [list(columns), *cells]:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(f"  {line.rstrip()}")


def print_list(title: str, entries: Sequence[tuple[str, str, str]]) -> None:
    """Entries of (name, text, what to do), one line each and a second one for what to do; nothing where there are none.

    On a terminal long lines are wrapped with an indent.
    """
    lines = [
        printable(line, kept="")
        for name, text, remedy in entries
        for line in (f"  {name}: {text}", f"    {remedy}" if remedy else "")
    ]
    if not entries:
        return
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.padding import Padding
        from rich.text import Text

        console = Console()
        console.print(Text(printable(title), style="italic"))
        for line in filter(None, lines):
            text = line.lstrip()
            console.print(Padding(Text(text), (0, 0, 0, len(line) - len(text))))
        console.print()
        return
    click.echo("\n".join([printable(title), *filter(None, lines)]))


def print_line(text: str = "") -> None:
    """One line of prose."""
    click.echo(printable(text))


def print_note(text: str) -> None:
    """One line about the run itself, on stderr, so that stdout has only the answer."""
    click.echo(printable(text), err=True)


TABLE_NAME = 48
"""Characters of a name in a table; `--verbose` and JSON have the whole names."""


def table_name(name: str) -> str:
    """A name for a table, without its middle where it is long."""
    return short_name(name, TABLE_NAME)


def device_text(device: str, *variant: str) -> str:
    """A device with its platform and software version: `DLA (orin-nx-16 10.3)`, or `CPU` where it has none."""
    known = " ".join(filter(None, variant))
    return f"{device} ({known})" if known else device


def bytes_text(size: int) -> str:
    """A size for people: `0 B`, `1.5 KiB`, `12.0 MiB`."""
    if size < 1024:
        return f"{size} B"
    value = float(size)
    for unit in ("KiB", "MiB"):
        value /= 1024
        if value < 1024:
            return f"{value:.1f} {unit}"
    return f"{value / 1024:.1f} GiB"


def _text(value: object) -> str:
    match value:
        case None:
            return "-"
        case tuple() | list():
            return (
                "x".join(map(str, value))
                if all(isinstance(part, int) for part in value)
                else ", ".join(map(str, value))
            )
        case _:
            return str(value)


def _style(cell: str) -> str:
    return {"yes": "green", "no": "red", "none": "red"}.get(cell, "")
