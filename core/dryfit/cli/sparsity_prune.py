"""`dryfit sparsity prune`: a copy of a model whose weights have the zeros that the device skips."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from dryfit.answers.options import NetworkOptions, Options
from dryfit.cli.console import json_option, print_json, print_line, print_list, print_note, print_table
from dryfit.cli.network_options import network_options
from dryfit.errors import ConfigError

if TYPE_CHECKING:
    from dryfit.answers.pruning import Pruning


@click.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where the pruned copy is written.",
)
@click.option("--force", is_flag=True, help="Overwrite the output. MODEL itself is never overwritten.")
@network_options
@json_option
def prune(model: Path, output: Path, force: bool, options: Options, as_json: bool) -> None:
    """Write a copy of an ONNX MODEL, pruned by magnitude where the device then skips the zeros.

    Of each four neighbours along the input channels the two largest stay; of equal ones those that stand first.
    Pruned weights compute something else: measure the accuracy, and train again.
    """
    from dryfit.answers.defaults import with_every_precision
    from dryfit.answers.pruning import ACCURACY
    from dryfit.cli.console import print_defaults
    from dryfit.cli.sparsity_tables import summary_line

    _require_free(model, output, force=force)
    asked, assumed = with_every_precision(NetworkOptions.said({**options, "sparsity": "disable"}))
    pruning, report = _pruned(model, output, asked, assumed)
    if as_json:
        print_json(report)
        return
    print_defaults(assumed)
    rows = [
        (one["name"], one["layers"], f"{one['zeroed']:,}", f"{one['size']:,}", f"{100 * one['energy_kept']:.1f} %")
        for one in report["pruned"]
    ]
    if rows:
        print_table("", ["weights", "layers", "made 0", "of", "squares kept"], rows)
    print_list("Left as they are", [(", ".join(one["layers"]), one["reason"], "") for one in report["left"]])
    print_line(f"{output}: {pruning!s}")
    print_line(summary_line(report["after"]))
    print_note(ACCURACY)


_NOT_STORED = "the model computes them, has them in a function, or uses them elsewhere too"


def _require_free(model: Path, output: Path, *, force: bool) -> None:
    """Refuse an output that is there.

    Raises:
        ConfigError: it is the model, or exists and may not be overwritten.
    """
    if output.exists() and output.samefile(model):
        raise ConfigError(
            "The model itself is never pruned", where=f"--output {output}", remedy="Choose another name for the copy"
        )
    if output.exists() and not force:
        raise ConfigError(
            "The file exists already", where=f"--output {output}", remedy="Choose another name, or give --force"
        )


def _pruned(path: Path, output: Path, options: NetworkOptions, assumed: list[str]) -> tuple[Pruning, dict[str, Any]]:
    """Prune, write, and say what was done as plain data."""
    from dryfit.answers.asked import load_network, require_shapes
    from dryfit.answers.pruning import ACCURACY, LeftWeights, plan_pruning
    from dryfit.cli.log import log_to_stderr
    from dryfit.cli.network_config import create_config
    from dryfit.cli.sparsity_report import sparsity_report
    from dryfit.onnx.model_file import read_model, write_model
    from dryfit.onnx.pruned_model import ExchangedWeights, with_weights

    model, external = read_model(path)
    network = load_network(model, options, path.parent)
    require_shapes(network, options.shape)
    config = create_config(network, options)
    with log_to_stderr(None):
        pruning = plan_pruning(network, config)
    wanted = {}
    for one in pruning.pruned:
        nodes = [node for name in one.layers for node in network.layer(name).onnx_nodes]
        wanted[ExchangedWeights(nodes, one.before, one.after)] = one
    copy, missing = with_weights(model, external, list(wanted))
    lost = [wanted[one] for one in missing]
    pruning = attrs.evolve(
        pruning,
        pruned=[one for one in pruning.pruned if one not in lost],
        left=[
            *pruning.left,
            *(LeftWeights(one.name, one.layers, _NOT_STORED) for one in lost),
        ],
    )
    before = sparsity_report(path, options, assumed)
    after = sparsity_report(path, options, assumed, copy)
    write_model(copy, output, external, path.parent)
    keys = ("device", "platform", "software", "precisions", "fallback", "assumed", "pattern")
    return pruning, {
        "model": str(path),
        "output": str(output),
        **{key: before[key] for key in keys},
        "pruned": [
            {
                "name": one.name,
                "layers": list(one.layers),
                "size": one.after.size,
                "zeroed": one.zeroed,
                "energy_kept": one.energy_kept,
            }
            for one in pruning.pruned
        ],
        "left": [attrs.asdict(one) for one in pruning.left],
        "before": before["summary"],
        "after": after["summary"],
        "note": ACCURACY,
    }
