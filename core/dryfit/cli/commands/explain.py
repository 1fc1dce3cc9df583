"""`dryfit explain`: why layers leave a device, what that costs, and which edits of the model would keep them there."""

from __future__ import annotations

from pathlib import Path

import click

from dryfit.answers.options import Options
from dryfit.cli.console import answer_options, output_option, print_note, show_answer
from dryfit.cli.network_options import ModelCommand, network_options


@click.command(cls=ModelCommand)
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("layer", required=False)
@network_options
@click.option(
    "--apply",
    "edits",
    metavar="ID[,ID...]",
    help="Apply these edits, everywhere or at one node (ID@NODE). Requires --output.",
)
@output_option("Edited model to write.")
@click.option("--force", is_flag=True, help="Overwrite the output, even if it is MODEL itself.")
@click.option("--no-edits", is_flag=True, help="Do not search for edits or input and output formats.")
@click.option(
    "--quantization",
    is_flag=True,
    help="Instead, show each layer's precision, each tensor's INT8 scale, and where each Q/DQ went and why.",
)
@answer_options
def explain(
    model: Path,
    layer: str | None,
    options: Options,
    edits: str | None,
    output: Path | None,
    force: bool,
    no_edits: bool,
    quantization: bool,
    as_json: bool,
) -> None:
    """Explain why layers of an ONNX MODEL, or one LAYER, cannot run on a device, and which edits would help.

    Each edit, and each input or output format that avoids a reformat, is verified by applying it to the model in
    memory. The defaults are those of `dryfit check`. --quantization shows precisions, scales and paths of
    Q/DQ instead; its default precision for a model without Q/DQ is INT8.
    """
    from dryfit.answers.explain import ExplainAnswer
    from dryfit.answers.explain import explain as answer_of
    from dryfit.answers.explain_quantization import QuantizationAnswer, explain_quantization
    from dryfit.answers.model_edits import EditedModelAnswer, apply_edits
    from dryfit.engine.progress import TerminalProgress

    if quantization and (edits is not None or no_edits):
        raise click.UsageError("--quantization cannot be combined with --apply or --no-edits: leave them out")
    if (edits is None) != (output is None):
        raise click.UsageError("--apply and --output must be given together")
    if edits is not None and layer is not None:
        raise click.UsageError("--apply does not take LAYER: name a node by ID@NODE")
    answer: ExplainAnswer | QuantizationAnswer | EditedModelAnswer
    if quantization:
        answer = explain_quantization(model, layer, **options)
    elif edits is not None:
        answer = apply_edits(model, edits, output, force=force, **options)
    else:
        with TerminalProgress() as progress:
            answer = answer_of(model, layer, edits=not no_edits, progress=progress, **options)
    for note in answer.notes:
        print_note(note)
    show_answer(answer, as_json=as_json)
