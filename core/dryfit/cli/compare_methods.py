"""`dryfit compare --methods`: a quantized model by several quantize methods, code by code."""

from __future__ import annotations

import logging
from pathlib import Path

import attrs
import click
from click.core import ParameterSource

from dryfit.answers.asked import load_network, require_shapes
from dryfit.answers.builder_config import METHOD_OPTION
from dryfit.answers.options import NetworkOptions
from dryfit.cli.compare_options import CompareOptions
from dryfit.cli.console import print_json
from dryfit.cli.log import log_to_stderr
from dryfit.cli.network_config import create_config
from dryfit.errors import ConfigError
from dryfit.plugins import registry


def compare_methods_of(model: Path, options: NetworkOptions, comparing: CompareOptions) -> int:
    """The command: 1 where a condition of --fail-below does not hold, else 0.

    Raises:
        UsageError: an option does not go with --methods.
        ConfigError: the file is an engine.
        DryfitError: the model cannot be built, or a sample cannot be read.
    """
    from dryfit.answers.comparison.compare_methods import compare_methods
    from dryfit.answers.comparison.method_sides import method_sides
    from dryfit.cli.compare_methods_report import methods_report
    from dryfit.cli.compare_methods_tables import print_methods
    from dryfit.cli.compare_report import falls_below

    on_host = _on_host(model, options)
    with log_to_stderr(logging.ERROR):
        network = load_network(model, attrs.evolve(on_host, quantize_method=comparing.methods[0]))
        require_shapes(network, on_host.shape)
        sides = method_sides(comparing.methods, network, create_config(network, on_host), comparing.threads)
        found = compare_methods(sides, comparing.samples(network, sides[0].plan), comparing.tolerance)
    report = methods_report(str(model), sides, found)
    outputs = [{**one, "is_output": True} for one in report["outputs"]]
    report["conditions"] = falls_below({"tensors": outputs}, comparing.fail_below)
    if comparing.as_json:
        print_json(report)
    else:
        print_methods(report)
    return int(any(one["failed"] for one in report["conditions"]))


def _on_host(model: Path, options: NetworkOptions) -> NetworkOptions:
    """The options for a build on this machine, where methods compute.

    Raises:
        UsageError: an option does not go with --methods.
        ConfigError: the file is an engine.
    """
    if model.suffix != ".onnx":
        raise ConfigError(
            "The quantize methods of an engine were chosen when it was built",
            where=f"--methods, {model}",
            remedy="Compare the model: dryfit compare MODEL.onnx --methods ...",
        )
    context, host = click.get_current_context(), registry.host().device
    if context.get_parameter_source("against") is not ParameterSource.DEFAULT:
        raise click.UsageError("Give either --against or --methods: the first method is what others are compared with")
    given = context.get_parameter_source("device") is not ParameterSource.DEFAULT
    if given and options.default_device.upper() != host.upper():
        raise click.UsageError(f"Quantize methods are computed on the {host}: leave --device out with --methods")
    if any(not pattern for pattern, _ in options.quantize_method):
        raise click.UsageError(f"With --methods {METHOD_OPTION} names the methods of single layers: LAYER=NAME")
    return attrs.evolve(options, device=host)
