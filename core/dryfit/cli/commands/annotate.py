"""`dryfit annotate`: a copy of a model whose nodes say on which device they run, for viewers such as Netron."""

from __future__ import annotations

from pathlib import Path

import click

from dryfit.answers.options import Options
from dryfit.cli.console import answer_options, output_option, print_note, show_answer
from dryfit.cli.network_options import ModelCommand, network_options

COLORS = ("none", "names", "domains", "operators")


@click.command(cls=ModelCommand)
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@output_option("Annotated copy to write.", required=True)
@click.option(
    "--color",
    "--colour",
    "color",
    type=click.Choice(COLORS),
    default="none",
    show_default=True,
    help="Show devices in node names (the copy still runs); in domains, so that Netron colors only nodes off the "
    "default device; or in operators, with one color per device (the last two are for viewing only).",
)
@click.option("--force", is_flag=True, help="Overwrite the output. MODEL itself is never overwritten.")
@network_options
@answer_options
def annotate(model: Path, output: Path, color: str, force: bool, options: Options, as_json: bool) -> None:
    """Write a copy of an ONNX MODEL with the device, segment, precision, format, scale and estimate of each node.

    They are stored in the metadata of each node, which Netron shows, under keys that begin with `dryfit.`. The copy
    computes the same results. The defaults are those of `dryfit estimate`. See docs/how-to/look-at-a-model.md.
    """
    from dryfit.answers.annotate import annotate as answer_of

    answer = answer_of(model, output, color=color, force=force, **options)
    for note in answer.notes:
        print_note(note)
    show_answer(answer, as_json=as_json)
