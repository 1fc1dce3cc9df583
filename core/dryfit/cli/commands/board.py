"""`dryfit board`: to a board and back: what its results show, and corrections that are learnt from them."""

from __future__ import annotations

from pathlib import Path

import click

from dryfit.cli.console import json_option, show_answer
from dryfit.cli.lazy_group import LazyGroup

COMMANDS = {"learn": "dryfit.cli.commands.board:learn"}
"""Name to place of every command."""

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group(cls=LazyGroup, places=COMMANDS)
def board() -> None:
    """Compare dryfit with a board, and correct it by what the board shows."""


@click.command()
@click.argument("results", nargs=-1, required=True, type=FILE)
@click.option(
    "--output", "-o", required=True, type=click.Path(dir_okay=False, path_type=Path), help="Overlay to write (TOML)."
)
@click.option("--kit", type=FILE, metavar="KIT", help="The kit; not needed for results of probes alone.")
@click.option("--name", default="", metavar="NAME", help="Name of the overlay (default: that of the file).")
@click.option("--author", default="", metavar="TEXT", help="Who made it, for those with whom it is shared.")
@click.option("--force", is_flag=True, help="Overwrite the output.")
@json_option
def learn(
    results: tuple[Path, ...], output: Path, kit: Path | None, name: str, author: str, force: bool, as_json: bool
) -> None:
    """Write what RESULTS of a board show as an overlay, for --overlay of other commands.

    The overlay switches rules off that the board does not have, moves limits that it sets elsewhere, confirms rules
    that it was seen to obey, and has the cost model's parameters, fitted to the measured latencies with their errors.
    Several RESULTS must be of the same board, TensorRT version and power mode.
    """
    from dryfit.answers.board_learn import board_learn

    answer = board_learn(results, output, kit=kit, name=name, author=author, force=force)
    show_answer(answer, as_json=as_json)
