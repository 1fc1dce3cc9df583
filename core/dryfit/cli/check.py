"""`dryfit check`: where the layers of a model can run, and why not elsewhere. Builds nothing."""

from __future__ import annotations

from pathlib import Path

import attrs
import click

from dryfit.cli.assumptions import with_defaults
from dryfit.cli.console import json_option, print_json, print_line, print_note
from dryfit.cli.fail_conditions import FailCondition, fail_on_option, print_failed
from dryfit.cli.log import log_to_stderr
from dryfit.cli.network_config import create_config, load_model, require_shapes
from dryfit.cli.network_options import NetworkOptions, network_options
from dryfit.cli.placement_conditions import SUBJECTS, placement_outcomes
from dryfit.cli.placement_tables import print_placement, print_verdict, summary_line

FORMATS = ("text", "json", "junit", "sarif")


@click.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@network_options
@fail_on_option(SUBJECTS, "fallback>3%,loadables>8,dla.convolution.cbuf")
@click.option(
    "--format",
    "chosen",
    type=click.Choice(FORMATS),
    help="Form of the output: for people, for programs, or as JUnit XML or SARIF 2.1.0 for continuous integration.",
)
@click.option("--verbose", is_flag=True, help="Also show every layer, causes of segments, and reformats.")
@click.option("--quiet", is_flag=True, help="Print the summary only.")
@json_option
@click.pass_context
def check(
    context: click.Context,
    model: Path,
    options: NetworkOptions,
    fail_on: tuple[FailCondition, ...],
    chosen: str | None,
    verbose: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Show on which device each layer of an ONNX MODEL can run, and every rule that it violates. Builds nothing.

    Defaults: with --platform the board's accelerator, else the GPU; FP16 on a device that does not compute FP32, and
    INT8 too where scales are given; fallback of an accelerator to the GPU. check, build, explain and estimate share
    them. A network that cannot be built exits with 0 unless --fail-on refusals or --fail-on unplaced is given.
    """
    from dryfit.building import assess
    from dryfit.cli.junit_report import junit_text
    from dryfit.cli.placement_report import placement_report
    from dryfit.cli.sarif_report import sarif_text

    form = chosen or ("json" if as_json else "text")
    if as_json and form != "json":
        raise click.UsageError(f"--json and --format {form} exclude each other", context)

    options, defaults = with_defaults(options)
    network = load_model(model, options.shapes, flags=options.creation_flags, quantize_method=options.network_method)
    if options.shape_values or any(len(asked) == 3 for asked in options.shapes.values()):
        require_shapes(
            network, options.shapes
        )  # an optimization profile speaks of all dynamic inputs, or there is none
    config = create_config(network, options)
    with log_to_stderr(None):
        assessment = assess(network, config)
    for warning in assessment.memory_warnings:
        print_note(warning)
    report = placement_report(str(model), assessment, config.settings(network), defaults, network)
    found = placement_outcomes(fail_on, report)
    match form:
        case "json":
            print_json({**report, "conditions": [attrs.asdict(outcome) for outcome in found]})
        case "junit":
            print_line(junit_text(report, found, config.explicit_device_types(network)))
        case "sarif":
            print_line(sarif_text(report, found))
        case _ if quiet:
            print_verdict(report, assessment.errors)
            print_line(summary_line(report))
        case _:
            print_placement(report, verbose, assessment.errors)
    context.exit(print_failed(found))
