"""`dryfit sparsity`: weights whose zeros a device skips: which layers have them, and a pruned copy of a model."""

from __future__ import annotations

from pathlib import Path

import click

from dryfit.answers.conditions import SPARSITY_SUBJECTS, FailCondition
from dryfit.answers.options import Options
from dryfit.cli.console import answer_options, output_option, print_note, show_answer
from dryfit.cli.fail_on import fail_on_option, print_failed
from dryfit.cli.lazy_group import LazyGroup
from dryfit.cli.network_options import ModelCommand, network_options

COMMANDS = {
    "check": "dryfit.cli.commands.sparsity:check",
    "prune": "dryfit.cli.commands.sparsity:prune",
}
"""Name to place of every command."""


@click.group(cls=LazyGroup, places=COMMANDS)
def sparsity() -> None:
    """Weights with zeros that a device skips, such as 2:4. No model runs."""


@click.command(cls=ModelCommand)
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@fail_on_option(SPARSITY_SUBJECTS, "unpruned,dense>20%,dla.sparsity.output_maps")
@click.option("--verbose", is_flag=True, help="Also show warnings and notes.")
@network_options
@answer_options
@click.pass_context
def check(
    context: click.Context,
    model: Path,
    fail_on: tuple[FailCondition, ...],
    verbose: bool,
    options: Options,
    as_json: bool,
) -> None:
    """Show which layers of an ONNX MODEL skip zero weights, and every rule that the other layers violate.

    The check uses the weights as the device stores them. Defaults are those of `dryfit estimate`: the accelerator, all
    its precisions, scales for every tensor, fallback to the GPU.
    """
    from dryfit.answers.sparsity import find_sparsity

    answer = find_sparsity(model, fail_on=fail_on, **options)
    for note in answer.notes:
        print_note(note)
    show_answer(answer, as_json=as_json, verbose=verbose)
    context.exit(print_failed(answer.conditions))


@click.command(cls=ModelCommand)
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@output_option("Pruned copy to write.", required=True)
@click.option("--force", is_flag=True, help="Overwrite the output. MODEL itself is never overwritten.")
@network_options
@answer_options
def prune(model: Path, output: Path, force: bool, options: Options, as_json: bool) -> None:
    """Write a copy of an ONNX MODEL, pruned by magnitude in the layers where the device can skip the zeros.

    Of each four neighbors along the input channels, the two largest are kept; of equal ones, the first. Pruning changes
    the results: measure the accuracy, and retrain.
    """
    from dryfit.answers.pruned_model import prune as answer_of

    answer = answer_of(model, output, force=force, **options)
    for note in answer.notes:
        print_note(note)
    show_answer(answer, as_json=as_json)
    if not as_json:
        print_note(answer.note)
