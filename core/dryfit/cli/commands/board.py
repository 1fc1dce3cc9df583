"""`dryfit board`: kits that go to a board, and what comes back from it."""

from __future__ import annotations

import functools
from pathlib import Path

import click

from dryfit.answers.options import Options
from dryfit.cli.console import json_option, show_answer
from dryfit.cli.network_options import network_options, overlay_option

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_kits_option = functools.partial(click.option, "--kit", "kits", multiple=True, type=_FILE, metavar="FILE")


@click.group()
def board() -> None:
    """Compare dryfit with a board, and correct it by what the board shows."""


@board.command()
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
    help="Add generated networks that decide the rules that no document states, or all rules.",
)
@click.option(
    "--after",
    multiple=True,
    type=_FILE,
    metavar="RESULTS",
    help="Results of an earlier kit: add networks that find where the board has limits that it moved. May be repeated.",
)
@_kits_option(help="The kit of --after: required if it has models of yours. May be repeated.")
@click.option(
    "--anonymous",
    "anonymously",
    is_flag=True,
    help="Number layers and tensors, and replace weights by random ones of the same ranges.",
)
@click.option("--verbose", is_flag=True, help="Also list the rules that probes decide.")
@network_options
@json_option
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

    The kit needs trtexec of JetPack 4.6, 5 or 6 and Python 3.6 there, no root and no network. It packs results.zip,
    which `dryfit board read` compares with what dryfit expects.
    """
    from dryfit.answers.board.pack import board_pack

    answer = board_pack(models, output=output, probes=probes, after=after, kit=kits, anonymously=anonymously, **options)
    show_answer(answer, as_json=as_json, verbose=verbose)


@board.command()
@click.argument("results", type=_FILE)
@click.option("--kit", type=_FILE, metavar="FILE", help="The kit: required if it has models of yours.")
@click.option("--no-outputs", is_flag=True, help="Do not run the models here to compare outputs.")
@click.option("--verbose", is_flag=True, help="List all rules, layers, facts and times.")
@overlay_option
@json_option
def read(
    results: Path, kit: Path | None, no_outputs: bool, verbose: bool, overlays: tuple[Path, ...], as_json: bool
) -> None:
    """Compare RESULTS, which a kit packed on a board, with what dryfit expects of the same builds.

    Lists for each rule how many layers agree with it on this board, layers with another verdict, loadables, copies and
    formats that differ, measured times against estimates, and outputs. Board, TensorRT version and power mode are those
    of the results.
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
@_kits_option(help="The kit: required if it has models of yours. May be repeated for RESULTS of several kits.")
@click.option("--name", default="", metavar="NAME", help="Name of the overlay (default: that of the file).")
@click.option("--author", default="", metavar="TEXT", help="Author of the overlay, for people whom you share it with.")
@click.option("--force", is_flag=True, help="Overwrite the output.")
@json_option
def learn(
    results: tuple[Path, ...], output: Path, kits: tuple[Path, ...], name: str, author: str, force: bool, as_json: bool
) -> None:
    """Write what RESULTS of a board show as an overlay, for --overlay of other commands.

    The overlay switches rules off that the board does not have, moves limits that it sets elsewhere, confirms rules
    that it was seen to obey, and has the cost model's parameters, fitted to the measured latencies with their errors.
    Several RESULTS must be of the same board, TensorRT version and power mode.
    """
    from dryfit.answers.board.learn import board_learn

    answer = board_learn(results, output, kit=kits, name=name, author=author, force=force)
    show_answer(answer, as_json=as_json)
