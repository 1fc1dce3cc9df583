"""`dryfit board`: kits that go to a board, and what comes back from it."""

from __future__ import annotations

import functools
from pathlib import Path

import click

from dryfit.answers.options import Options
from dryfit.cli.console import answer_options, show_answer
from dryfit.cli.lazy_group import CommandGroup
from dryfit.cli.network_options import ModelCommand, network_options, overlay_option

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_kits_option = functools.partial(click.option, "--kit", "kits", multiple=True, type=_FILE, metavar="FILE")


@click.group(cls=CommandGroup)
def board() -> None:
    """Compare dryfit's predictions with a board, and correct them."""


@board.command(cls=ModelCommand)
@click.argument("models", nargs=-1, metavar="[MODEL]...", type=_FILE)
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("kit.zip"),
    show_default=True,
    metavar="FILE",
    help="Write the kit to this file.",
)
@click.option(
    "--probes",
    is_flag=False,
    flag_value="inferred",
    metavar="[inferred|all]",
    help="Add generated networks that test the undocumented rules, or all rules.",
)
@click.option(
    "--after",
    multiple=True,
    type=_FILE,
    metavar="RESULTS",
    help="Results of an earlier kit: add networks that narrow down limits that differ on the board. May be repeated.",
)
@_kits_option(help="The kit of --after: required if it contains your models. May be repeated.")
@click.option(
    "--anonymous",
    "anonymously",
    is_flag=True,
    help="Number layers and tensors, and replace weights by random ones of the same ranges.",
)
@click.option("--verbose", is_flag=True, help="Also list the rules that the probes test.")
@network_options
@answer_options
def pack(
    models: tuple[Path, ...],
    output: Path,
    probes: str | None,
    after: tuple[Path, ...],
    kits: tuple[Path, ...],
    anonymously: bool,
    verbose: bool,
    options: Options,
    as_json: bool,
) -> None:
    """Pack a kit that builds and measures MODELs on a board: copy it there, and run `sh run.sh`.

    On the board, the kit needs trtexec of JetPack 4.6, 5 or 6 and Python 3.6, but no root and no network. It writes
    results.zip, which `dryfit board read` compares with dryfit's predictions.
    """
    from dryfit.answers.board.pack import board_pack

    answer = board_pack(models, output=output, probes=probes, after=after, kit=kits, anonymously=anonymously, **options)
    show_answer(answer, as_json=as_json, verbose=verbose)


@board.command()
@click.argument("results", type=_FILE)
@click.option("--kit", type=_FILE, metavar="FILE", help="The kit: required if it contains your models.")
@click.option("--no-outputs", is_flag=True, help="Do not run the models here to compare outputs.")
@click.option("--verbose", is_flag=True, help="List all rules, layers, facts and times.")
@overlay_option
@answer_options
def read(
    results: Path, kit: Path | None, no_outputs: bool, verbose: bool, overlays: tuple[Path, ...], as_json: bool
) -> None:
    """Compare the RESULTS of a kit from a board with dryfit's predictions for the same builds.

    Lists how many layers agree with each rule on this board, layers with a different verdict, differences in loadables,
    copies and formats, measured and estimated latencies, and outputs. Board, TensorRT version and power mode come from
    the results.
    """
    from dryfit.answers.board.read import board_read

    answer = board_read(results, kit=kit, outputs=not no_outputs, overlays=overlays)
    show_answer(answer, as_json=as_json, verbose=verbose)


@board.command()
@click.argument("results", nargs=-1, required=True, type=_FILE)
@click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the overlay to this file (TOML).",
)
@_kits_option(help="The kit: required if it contains your models. May be repeated for RESULTS of several kits.")
@click.option("--name", default="", metavar="NAME", help="Name of the overlay (default: that of the file).")
@click.option("--author", default="", metavar="TEXT", help="Author of the overlay, for people you share it with.")
@click.option("--force", is_flag=True, help="Overwrite the output.")
@answer_options
def learn(
    results: tuple[Path, ...], output: Path, kits: tuple[Path, ...], name: str, author: str, force: bool, as_json: bool
) -> None:
    """Write an overlay from a board's RESULTS, to pass to other commands with --overlay.

    The overlay disables rules that do not apply to the board, changes limits, confirms rules, and contains the
    parameters of the cost model, fitted to the measured latencies, with their errors. Several RESULTS must come from
    the same board, TensorRT version and power mode.
    """
    from dryfit.answers.board.learn import board_learn

    answer = board_learn(results, output, kit=kits, name=name, author=author, force=force)
    show_answer(answer, as_json=as_json)
