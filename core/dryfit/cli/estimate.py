"""`dryfit estimate`: what a model is estimated to cost on a board, layer by layer. Builds and measures nothing."""

from __future__ import annotations

from pathlib import Path

import click

from dryfit.answers.defaults import with_scales
from dryfit.answers.options import NetworkOptions, Options
from dryfit.cli.console import json_option, print_json
from dryfit.cli.log import log_to_stderr
from dryfit.cli.network_options import network_options


@click.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@network_options
@json_option
def estimate(model: Path, options: Options, as_json: bool) -> None:
    """Estimate what an ONNX MODEL takes on a board: multiplier cycles, bytes, time and throughput. Measures nothing.

    The defaults are those of `dryfit check`; with INT8 every tensor is taken to have a scale, unless
    --calibration-cache or --ranges gives them. Times have two digits and their error. Formula and parameters:
    docs/reference/dla-cost-model.md.
    """
    from dryfit.cli.estimate_report import estimate_report
    from dryfit.cli.estimate_tables import print_estimate

    asked, assumed = with_scales(NetworkOptions.said(options))
    with log_to_stderr(None):
        report = estimate_report(model, asked, assumed)
    if as_json:
        print_json(report)
    else:
        print_estimate(report)
