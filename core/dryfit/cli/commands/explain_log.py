"""`dryfit explain-log`: what the log of a build on a board shows, and the rules behind it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from dryfit.answers.options import Options, option_name
from dryfit.cli.console import answer_options, show_answer
from dryfit.cli.network_options import ModelCommand, network_options


@click.command(cls=ModelCommand)
@click.argument("log", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option(
    "--model",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="MODEL",
    help="ONNX model of the build: compare the placement in the log with dryfit's.",
)
@click.option("--encoding", metavar="NAME", help="Encoding of the log, such as cp1252 (default: detected).")
@click.option("--verbose", is_flag=True, help="Also list every layer, segment and unknown message in full.")
@network_options
@answer_options
def explain_log(
    log: Path, model: Path | None, encoding: str | None, verbose: bool, options: Options, as_json: bool
) -> None:
    """Explain a LOG that trtexec, a builder or a runtime of TensorRT wrote on a board (- reads standard input).

    Lists each layer that left the DLA with the rule and a remedy, the layers of each device, loadables
    and their limit, memory, warnings and errors. With --model, also shows where dryfit expected a different
    placement: precisions, DLA core, fallback, version and board come from the log; options override them.
    """
    from dryfit.answers.explain_log import explain_log as answer_of
    from dryfit.engine.progress import TerminalProgress

    if options and model is None:
        given = ", ".join(map(option_name, options))
        raise click.UsageError(f"Options of the build require --model (found {given})")
    with TerminalProgress() as progress:
        answer = answer_of(
            sys.stdin.buffer if str(log) == "-" else log,
            model,
            encoding=encoding,
            progress=progress,
            **options,
        )
    show_answer(answer, as_json=as_json, verbose=verbose)
