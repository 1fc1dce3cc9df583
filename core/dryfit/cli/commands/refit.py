"""`dryfit refit`: other weights for an engine that is built."""

from __future__ import annotations

from pathlib import Path

import click

from dryfit.cli.console import answer_options, output_option, print_line, show_answer


@click.command()
@click.argument("engine_file", metavar="ENGINE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--onnx",
    "model",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="MODEL",
    help="Model with the new weights: the one that the engine was built from, retrained or not.",
)
@output_option("Refitted engine to write; may be ENGINE itself.")
@click.option("--list", "lists", is_flag=True, help="Only list the refittable weights.")
@answer_options
def refit(engine_file: Path, model: Path | None, output: Path | None, lists: bool, as_json: bool) -> None:
    """Replace the weights of an ENGINE that was built with --refit or --stripped."""
    from dryfit.answers.refit import refit as answer_of
    from dryfit.answers.refit import refittable_weights

    if lists == (model is not None or output is not None) or (model is None) != (output is None):
        raise click.UsageError("Pass either --list, or --onnx MODEL and --output FILE")
    if model is None or output is None:
        show_answer(refittable_weights(engine_file), as_json=as_json)
        return
    answer = answer_of(engine_file, model, output)
    print_line(answer.to_json() if as_json else answer.summary_line())
