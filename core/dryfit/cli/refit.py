"""`dryfit refit`: other weights for an engine that is built."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dryfit.answers.text import bytes_text
from dryfit.cli.console import json_option, print_json, print_line, print_table
from dryfit.errors import OnnxImportError

if TYPE_CHECKING:
    from dryfit.builder.refit.refitter import Refitter


@click.command()
@click.argument("engine_file", metavar="ENGINE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--onnx",
    "model",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="MODEL",
    help="The model whose weights the engine gets: the one that it was built from, trained on or not.",
)
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where the refitted engine is written; it may be ENGINE.",
)
@click.option("--list", "lists", is_flag=True, help="Only show which weights can be exchanged.")
@json_option
def refit(engine_file: Path, model: Path | None, output: Path | None, lists: bool, as_json: bool) -> None:
    """Exchange the weights of an ENGINE that was built with --refit or --stripped."""
    from dryfit.builder.refit.refitter import Refitter
    from dryfit.cli.refit_report import refit_line, weights_report
    from dryfit.engine.engine import Engine

    if lists == (model is not None or output is not None) or (model is None) != (output is None):
        raise click.UsageError("Either --list, or --onnx MODEL and --output FILE")
    engine = Engine.load(engine_file)
    refitter = Refitter(engine)
    weights = weights_report(engine.plan.refit) if engine.plan.refit is not None else []
    if model is not None and output is not None:
        _refit(refitter, model)
        engine.save(output)
    if as_json:
        size = output.stat().st_size if output is not None else engine_file.stat().st_size
        shown = engine_file if output is None else output
        print_json({"engine": str(shown), "engine_bytes": size, "stripped": engine.is_stripped, "weights": weights})
    elif output is not None:
        print_line(f"{output}: {len(weights)} weights from {model}, {bytes_text(output.stat().st_size)}")
    else:
        print_line(refit_line(engine.plan))
        rows = [
            (one["name"], one["type"], one["shape"], ", ".join(f"{at['layer']} {at['role']}" for at in one["places"]))
            for one in weights
        ]
        print_table("Weights", ["name", "type", "shape", "layer and role"], rows)


def _refit(refitter: Refitter, model: Path) -> None:
    """Put the weights of a model into an engine.

    Raises:
        OnnxImportError: it is not the engine's model; all reasons are listed.
    """
    from dryfit.onnx.refitter import OnnxParserRefitter

    parser = OnnxParserRefitter(refitter)
    if not parser.refit_from_file(model):
        reasons = [parser.get_error(index).desc() for index in range(parser.num_errors)]
        raise OnnxImportError(
            "The engine cannot be refitted from this model",
            where=f"file {str(model)!r}",
            found="".join(f"\n  {reason}" for reason in reasons[:20]),
            remedy="Take the model that the engine was built from, trained on or not; or build an engine from this one",
        )
    refitter.refit_cuda_engine()
