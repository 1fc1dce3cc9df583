"""`dryfit check`: where the layers of a model can run, and why not elsewhere. Builds nothing."""

from __future__ import annotations

from pathlib import Path

import click

from dryfit.answers.conditions import PLACEMENT_SUBJECTS, FailCondition
from dryfit.answers.options import Options
from dryfit.cli.console import answer_options, print_line, print_note, show_answer, show_bar
from dryfit.cli.fail_on import fail_on_option, print_failed
from dryfit.cli.network_options import ModelCommand, network_options

FORMATS = ("text", "json", "junit", "sarif")


@click.command(cls=ModelCommand)
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@network_options
@fail_on_option(PLACEMENT_SUBJECTS, "fallback>3%,loadables>8,dla.convolution.cbuf")
@click.option(
    "--format",
    "chosen",
    type=click.Choice(FORMATS),
    help="Output format: text, JSON, or JUnit XML or SARIF 2.1.0 for continuous integration.",
)
@click.option("--verbose", is_flag=True, help="Also show every layer, why segments begin, and reformats.")
@answer_options
@click.pass_context
def check(
    context: click.Context,
    model: Path,
    options: Options,
    fail_on: tuple[FailCondition, ...],
    chosen: str | None,
    verbose: bool,
    as_json: bool,
) -> None:
    """Show on which device each layer of an ONNX MODEL can run, and every rule that it violates. Builds nothing.

    Defaults, shared by check, build, explain and estimate: the accelerator of --platform, otherwise the GPU; FP16 on
    devices without FP32, plus INT8 if scales are given; fallback from an accelerator to the GPU. A network that cannot
    be built exits with 0 unless --fail-on refusals or --fail-on unplaced is given.
    """
    from dryfit.answers.check import check as answer_of

    form = chosen or ("json" if as_json else "text")
    if as_json and form != "json":
        raise click.UsageError(f"--json and --format {form} cannot be combined: leave one out", context)
    answer = answer_of(model, fail_on=fail_on, **options)
    for note in answer.notes:
        print_note(note)
    match form:
        case "json":
            print_line(answer.to_json())
        case "junit":
            from dryfit.cli.junit_report import junit_text

            print_line(junit_text(answer))
        case "sarif":
            from dryfit.cli.sarif_report import sarif_text

            print_line(sarif_text(answer))
        case _:
            found = answer.summary
            show_bar([*found.layers_by_device.items(), *([("", found.unplaced_layers)] * bool(found.unplaced_layers))])
            show_answer(answer, as_json=False, verbose=verbose)
    context.exit(print_failed(answer.conditions))
