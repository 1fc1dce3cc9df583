"""`dryfit place`: which layers should leave the default device, by what targets estimate. Measures nothing."""

from __future__ import annotations

from pathlib import Path

import click

from dryfit.answers.options import Options
from dryfit.cli.console import answer_options, output_option, print_note, show_answer
from dryfit.cli.network_options import ModelCommand, network_options

OBJECTIVES = ("latency", "throughput", "energy", "dla-coverage")


@click.command(cls=ModelCommand)
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--objective",
    type=click.Choice(OBJECTIVES),
    default="latency",
    show_default=True,
    help="Lowest latency, highest throughput with all devices busy, lowest energy, or most "
    "multiply-accumulates on the default device.",
)
@network_options
@output_option("Write the placement for --placement: JSON if FILE ends in .json, otherwise rules, one per line.")
@click.option("--force", is_flag=True, help="Overwrite the output.")
@answer_options
def place(
    model: Path,
    objective: str,
    options: Options,
    output: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Propose devices for the layers of an ONNX MODEL from estimates, within the limits of loadables and memory.

    Defaults: --device is the platform's accelerator, --precision is every type that it computes in, with an assumed
    INT8 scale for every tensor, and --fallback is the GPU. According to the cost model, the proposal is never worse
    than the default placement. See docs/how-to/place-by-cost.md.
    """
    from dryfit.answers.place import place as answer_of

    answer = answer_of(model, objective=objective, output=output, force=force, **options)
    for note in answer.notes:
        print_note(note)
    show_answer(answer, as_json=as_json)
