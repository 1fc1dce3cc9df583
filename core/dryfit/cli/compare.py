"""`dryfit compare`: an engine's arithmetic beside that of other devices, tensor by tensor."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dryfit.answers.asked import load_network, require_shapes
from dryfit.answers.options import NetworkOptions, Options
from dryfit.cli.compare_options import CompareOptions, compare_options
from dryfit.cli.console import print_json
from dryfit.cli.log import log_to_stderr
from dryfit.cli.network_config import create_config
from dryfit.cli.network_options import network_options

if TYPE_CHECKING:
    from dryfit.engine.plan import Plan


@click.command()
@click.argument("model", metavar="MODEL|ENGINE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@network_options
@compare_options
def compare(model: Path, options: Options, comparing: CompareOptions) -> int:
    """Compare the results of a MODEL on a device with a reference, layer by layer, and show where they diverge.

    MODEL is an ONNX model, built as the options say, or an engine file. An engine that was built with --refit has the
    model's weights for the others to compute with; of any other they get the weights that it stores. Each layer's error
    is split into what the layer adds itself, on the inputs that the other side has, and what it inherits.

    With --methods a quantized MODEL is computed by quantize methods on this machine, and its codes are compared.
    """
    said = NetworkOptions.said(options)
    if comparing.methods:
        from dryfit.cli.compare_methods import compare_methods_of

        return compare_methods_of(model, said, comparing)
    from dryfit.answers.comparison.compare import compare as compared
    from dryfit.answers.comparison.compare import declared_types
    from dryfit.answers.comparison.sides import EngineSide, compared_sides
    from dryfit.answers.comparison.stored_network import compared_network
    from dryfit.cli.compare_report import comparison_report, falls_below
    from dryfit.cli.compare_tables import print_comparison
    from dryfit.engine.progress import TerminalProgress

    with log_to_stderr(logging.ERROR):
        plan = _engine(model, said) if model.suffix != ".onnx" else _built(model, said)
        with TerminalProgress() as progress:
            known = compared_network(plan, progress)
        network, declared = known.network, declared_types(known.network)
        engine = EngineSide(model.name, plan, declared, comparing.threads)
        sides = compared_sides(comparing.against, network, plan, declared, comparing.threads)
        found = compared(engine, sides, comparing.samples(network, plan), comparing.tolerance)
    report = comparison_report(str(model), plan, known, sides, found)
    report["conditions"] = falls_below(report, comparing.fail_below)
    if comparing.as_json:
        print_json(report)
    else:
        print_comparison(report)
    return int(any(one["failed"] for one in report["conditions"]))


def _built(model: Path, options: NetworkOptions) -> Plan:
    """The plan of a model, which keeps the network with the ranges that it was built with."""
    from dryfit.builder.config.enumerations import BuilderFlag
    from dryfit.building import Builder

    network = load_network(model, options)
    require_shapes(network, options.shape)
    config = create_config(network, options)
    config.set_flag(BuilderFlag.REFIT)  # so that the plan keeps the network, ranges and all
    return Builder().build_plan(network, config)


def _engine(path: Path, options: NetworkOptions) -> Plan:
    """The plan of an engine file.

    Raises:
        UsageError: options say how to build what is built.
    """
    from dryfit.engine.engine import Engine

    if options != NetworkOptions():
        raise click.UsageError("An engine is built: what it is built with cannot be changed. Give the model instead")
    return Engine.load(path).plan
