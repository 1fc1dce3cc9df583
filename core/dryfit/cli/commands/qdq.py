"""`dryfit qdq`: models that state by Q/DQ what is quantized, and their lint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dryfit.answers.conditions import LINT_SUBJECTS, FailCondition
from dryfit.answers.json_data import plain
from dryfit.cli.console import answer_options, print_line, show_answer
from dryfit.cli.fail_on import fail_on_option, print_failed
from dryfit.cli.junit_document import case, junit_document
from dryfit.cli.lazy_group import LazyGroup
from dryfit.cli.network_options import NamedShapes, flat_shapes, shape_option
from dryfit.cli.sarif_document import rule_entry, sarif_document

if TYPE_CHECKING:
    from dryfit.answers.lint import LintAnswer

COMMANDS = {
    "lint": "dryfit.cli.commands.qdq:lint",
}
"""Name to place of every command."""
FORMATS = ("text", "json", "junit", "sarif")


@click.group(cls=LazyGroup, places=COMMANDS)
def qdq() -> None:
    """Models with QuantizeLinear and DequantizeLinear. No model runs."""


@click.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@fail_on_option(LINT_SUBJECTS, "errors,qdq.weighted,qdq.output.activation>3")
@shape_option
@click.option(
    "--format",
    "chosen",
    type=click.Choice(FORMATS),
    help="Output format: text, JSON, or JUnit XML or SARIF 2.1.0 for continuous integration.",
)
@click.option("--verbose", is_flag=True, help="List all findings of a rule, not only the first few.")
@answer_options
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
    """Check the Q/DQ placement of an ONNX MODEL against TensorRT's recommendations, without changing the model."""
    from dryfit.answers.lint import lint as answer_of

    form = chosen or ("json" if as_json else "text")
    if as_json and form != "json":
        raise click.UsageError(f"--json and --format {form} cannot be combined: leave one out", context)
    answer = answer_of(model, shape=flat_shapes(shape), fail_on=fail_on)
    match form:
        case "json":
            print_line(answer.to_json())
        case "junit":
            print_line(_junit_text(answer))
        case "sarif":
            print_line(_sarif_text(answer))
        case _:
            show_answer(answer, as_json=False, verbose=verbose)
    context.exit(print_failed(answer.conditions))


def _junit_text(answer: LintAnswer) -> str:
    """JUnit XML in which each rule is a test; one with findings is skipped, with all of them."""
    cases = []
    for rule in answer.rules:
        found = [f"{one.layer}: {one.text}" for one in answer.findings_of(rule.rule)]
        cases.append(case(rule.severity, rule.rule, "; ".join(found)))
    return junit_document("dryfit qdq lint", answer.model, answer.conditions, {"rules": cases})


def _sarif_text(answer: LintAnswer) -> str:
    """SARIF 2.1.0 in which each finding is a result, with the severity of its rule."""
    rules = [
        rule_entry(
            rule.rule,
            text=rule.text,
            full_text=f"Source: {rule.source}.",
            help_text=f"{rule.remedy}. ",
            level=rule.severity,
            properties={},
        )
        for rule in answer.rules
    ]
    return sarif_document(answer.model, rules, _results(answer), answer.conditions, plain(answer.summary))


def _results(answer: LintAnswer) -> Iterator[dict[str, Any]]:
    for one in answer.findings:
        yield {
            "ruleId": one.rule,
            "level": one.severity,
            "message": {"text": f"{one.layer}: {one.text}"},
            "logicalLocations": [{"name": one.layer}],
            "partialFingerprints": {"layerAndRule/v1": f"{one.layer}:{one.tensor}:{one.rule}"},
            "properties": {"tensor": one.tensor, "onnx_nodes": list(one.onnx_nodes)},
        }
