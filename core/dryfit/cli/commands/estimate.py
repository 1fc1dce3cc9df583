"""`dryfit estimate`: what a model is estimated to cost on a board, layer by layer. Builds and measures nothing."""

from __future__ import annotations

from pathlib import Path

import click

from dryfit.answers.options import Options
from dryfit.cli.console import answer_options, print_note, show_answer
from dryfit.cli.network_options import ModelCommand, network_options


@click.command(cls=ModelCommand)
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--trace",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the estimated timeline of an inference to FILE, as Chrome trace events for Perfetto.",
)
@network_options
@answer_options
def estimate(model: Path, trace: Path | None, options: Options, as_json: bool) -> None:
    """Estimate the cost of an ONNX MODEL on a board: multiplier cycles, bytes, latency, throughput. Measures nothing.

    The defaults are those of `dryfit check`; with INT8, every tensor is assumed to have a scale,
    unless --calibration-cache or --ranges is given. Latencies have two digits and an error. For the formula and its
    parameters, see docs/reference/dla-cost-model.md.
    """
    from dryfit.answers.estimate import estimate as answer_of

    answer = answer_of(model, trace=trace, **options)
    for note in answer.notes:
        print_note(note)
    show_answer(answer, as_json=as_json)
