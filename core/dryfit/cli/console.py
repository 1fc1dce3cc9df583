"""Output: tables and colors by rich on a terminal, plain lines elsewhere, JSON where it was asked for.

Whatever a command prints goes through here; control characters in names of strangers are escaped where text is made.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from dryfit.answers.text import Answer, Block, Entries, Line, Table, plain_lines
from dryfit.short_text import lengths, printable

_QUIET = "dryfit.quiet"
"""What a command's context keeps `--quiet` under."""


def _keep_quiet(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    del parameter
    context.meta[_QUIET] = value


json_option: Callable[[Any], Any] = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
_quiet_option: Callable[[Any], Any] = click.option(
    "--quiet", is_flag=True, expose_value=False, callback=_keep_quiet, help="Print the outcome only."
)


def answer_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--json`, which it gets as `as_json`, and `--quiet`, which `show_answer` follows."""
    found: Callable[..., Any] = _quiet_option(json_option(command))
    return found


def _threads(help: str) -> Callable[[Any], Any]:
    return click.option("--threads", type=click.IntRange(min=1), metavar="N", help=help)


threads_option = _threads("Host threads (default: all CPUs).")
threads_of_processes_option = _threads("Host threads per process (default: all CPUs in total).")


def output_option(
    help: str, *names: str, required: bool = False, holds: str = "FILE", metavar: str | None = None
) -> Callable[[Any], Any]:
    """Return the option `--output`, `-o`, of a command that writes something.

    Args:
        help: what is written.
        names: further names of the option.
        required: whether it must be given.
        holds: what its path names: `FILE`, `DIR`, or `PATH` for either.
        metavar: its value in the help; None for `holds`.
    """
    kind = click.Path(dir_okay=holds != "FILE", file_okay=holds != "DIR", path_type=Path)
    return click.option(
        "--output", "-o", *names, "output", required=required, type=kind, metavar=metavar or holds, help=help
    )


def show(blocks: Iterable[Block]) -> None:
    """Print lines, tables and lists."""
    draw = _draw if sys.stdout.isatty() else _print
    for block in blocks:
        draw(block)


def show_answer(answer: Answer, *, as_json: bool, verbose: bool = False) -> None:
    """Print an answer, as text or as JSON; of the text only the outcome with `--quiet`."""
    context = click.get_current_context(silent=True)
    if as_json:
        click.echo(answer.to_json())
    elif context is not None and context.meta.get(_QUIET):
        show(answer.outcome())
    else:
        show(answer.blocks(verbose=verbose))


def _print(block: Block) -> None:
    for line in plain_lines(block):
        click.echo(line)


def _draw(block: Block) -> None:
    """Draw a block on a terminal; long lines of a list are wrapped with an indent."""
    from rich import box
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table as Grid
    from rich.text import Text

    match block:
        case Line():
            _print(block)
        case Entries(title, entries):
            if not entries:
                return
            console = Console()
            console.print(Text(printable(title), style="italic"))
            for line in block.lines():
                text = line.lstrip()
                console.print(Padding(Text(text), (0, 0, 0, len(line) - len(text))))
            console.print()
        case Table(title, columns):
            head = Text(printable(title)) if title else None
            grid = Grid(*columns, title=head, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
            for row in block.cells():
                grid.add_row(*(Text(cell, style=_style(cell)) for cell in row))
            Console().print(grid)


def show_bar(parts: Sequence[tuple[str, int]]) -> None:
    """Draw the parts of a whole as a bar with a legend on a terminal, where there are several; nothing elsewhere."""
    if not sys.stdout.isatty() or len(parts) < 2:
        return
    from rich.console import Console
    from rich.text import Text

    whole, legend = Text(), Text()
    for (name, amount), length, style in zip(parts, lengths([amount for _, amount in parts]), itertools.cycle(_STYLES)):
        whole.append("█" * length, style=style)
        legend.append("■ ", style=style).append(f"{amount} {printable(name or 'unplaced', kept='')}  ")
    Console().print(whole + "  " + legend)


_STYLES = ("green", "magenta", "yellow", "blue", "cyan")


def print_line(text: str = "") -> None:
    """One line of prose."""
    show([Line(text)])


def print_note(text: str) -> None:
    """One line about the run itself, on stderr, so that stdout has only the answer."""
    click.echo(printable(text), err=True)


def _style(cell: str) -> str:
    return {"yes": "green", "no": "red", "none": "red"}.get(cell, "")
