"""`dryfit place`: which layers should leave the default device, by what targets estimate. Measures nothing."""

from __future__ import annotations

from pathlib import Path

import click

from dryfit.answers.defaults import with_every_precision
from dryfit.answers.options import NetworkOptions, Options
from dryfit.cli.console import json_option, print_json, print_note
from dryfit.cli.log import log_to_stderr
from dryfit.cli.network_options import network_options
from dryfit.errors import ConfigError

OBJECTIVES = ("latency", "throughput", "energy", "dla-coverage")


@click.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--objective",
    type=click.Choice(OBJECTIVES),
    default="latency",
    show_default=True,
    help="Least time of a run, most runs a second with all devices at work, least energy, or most "
    "multiply-accumulates on the default device.",
)
@network_options
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the placement for --placement: JSON where FILE ends in .json, else rules, one a line.",
)
@click.option("--force", is_flag=True, help="Overwrite the output.")
@json_option
def place(
    model: Path,
    objective: str,
    options: Options,
    output: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Propose devices for the layers of an ONNX MODEL, by estimates, under the limits of loadables and memory pools.

    Without --device it is asked about the accelerator of the platform, without --precision about all types that the
    device computes in, with every tensor taken to have an INT8 scale, and without --fallback the other device is the
    GPU. By its own model the proposal is never worse than what a build does by itself. How it is found:
    docs/how-to/place-by-cost.md.
    """
    from dryfit.cli.place_output import write_placement
    from dryfit.cli.place_report import place_report, proposal_of
    from dryfit.cli.place_tables import print_proposal

    if output is not None and output.exists() and not force:
        raise ConfigError(
            "The file exists already", where=f"--output {output}", remedy="Choose another name, or give --force"
        )
    asked, assumed = with_every_precision(NetworkOptions.said(options))
    with log_to_stderr(None):
        network, config, proposal = proposal_of(model, asked, objective)
    compared = (proposal.before, proposal.after)
    for warning in dict.fromkeys(warning for one in compared for warning in one.assessment.memory_warnings):
        print_note(warning)
    report = place_report(str(model), asked, assumed, network, config, proposal, output)
    if output is not None:
        write_placement(output, network, report)
    if as_json:
        print_json(report)
    else:
        print_proposal(report)
