"""`dryfit qdq lint`: where the Q/DQ of a model stand against what is recommended."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import attrs
import click

from dryfit.answers.conditions import FailCondition, Subjects, beginnings
from dryfit.cli.console import json_option, print_json, print_line
from dryfit.cli.fail_on import fail_on_option, print_failed
from dryfit.cli.network_options import NamedShapes, flat_shapes, shape_option

FORMATS = ("text", "json", "junit", "sarif")


def _rules(first_word: str) -> Collection[str]:
    """The ids of all rules and their beginnings, whatever the first word is: a wrong one has a closest."""
    from dryfit.quantization.lint import all_lint_rules

    del first_word
    return {beginning for rule in all_lint_rules() for beginning in beginnings(rule)}


SUBJECTS = Subjects(
    {
        "errors": "what devices refuse",
        "warnings": "what costs accuracy or time",
        "notes": "what is worth knowing",
        "findings": "all of these",
    },
    aliases={"error": "errors", "warning": "warnings", "note": "notes", "finding": "findings"},
    rules=_rules,
)


@click.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@fail_on_option(SUBJECTS, "errors,qdq.weighted,qdq.output.activation>3")
@shape_option
@click.option(
    "--format",
    "chosen",
    type=click.Choice(FORMATS),
    help="Form of the output: for people, for programs, or as JUnit XML or SARIF 2.1.0 for continuous integration.",
)
@click.option("--verbose", is_flag=True, help="List every finding of a rule, not the first few.")
@json_option
@click.pass_context
def lint(
    context: click.Context,
    model: Path,
    fail_on: tuple[FailCondition, ...],
    shape: tuple[NamedShapes, ...],
    chosen: str | None,
    verbose: bool,
    as_json: bool,
) -> None:
    """Lint the Q/DQ placement of an ONNX MODEL against TensorRT's recommendations. Looks at the model as it is."""
    from dryfit.cli.qdq_report import lint_outcomes, lint_report
    from dryfit.cli.qdq_tables import junit_text, print_lint, sarif_text

    form = chosen or ("json" if as_json else "text")
    if as_json and form != "json":
        raise click.UsageError(f"--json and --format {form} exclude each other", context)
    report = lint_report(model, flat_shapes(shape))
    found = lint_outcomes(fail_on, report)
    match form:
        case "json":
            print_json({**report, "conditions": [attrs.asdict(outcome) for outcome in found]})
        case "junit":
            print_line(junit_text(report, found))
        case "sarif":
            print_line(sarif_text(report, found))
        case _:
            print_lint(report, verbose=verbose)
    context.exit(print_failed(found))
