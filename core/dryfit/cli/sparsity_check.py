"""`dryfit sparsity check`: which layers have zeros of weights that the device skips, and why others have not."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import attrs
import click

from dryfit.answers.conditions import PERCENT, FailCondition, Subjects, beginnings
from dryfit.answers.options import NetworkOptions, Options
from dryfit.cli.console import json_option, print_json
from dryfit.cli.fail_on import fail_on_option, print_failed
from dryfit.cli.network_options import network_options


def _rules(first_word: str) -> Collection[str]:
    """The ids of all rules on sparse weights and their beginnings, whatever the first word is."""
    from dryfit.plugins import registry

    del first_word
    tables = [target.sparsity.rules for target in registry.targets().values() if target.sparsity is not None]
    return {beginning for table in tables for rule in table.all_rules for beginning in beginnings(rule.id)}


SUBJECTS = Subjects(
    {
        "dense": "layers whose zeros are not skipped, in number or % of the multiply-accumulates",
        "ineligible": "layers whose zeros would not be skipped with any weights, in number or %",
        "unpruned": "eligible layers whose weights do not have the pattern, in number or %",
    },
    units={subject: {PERCENT} for subject in ("dense", "ineligible", "unpruned")},
    rules=_rules,
)


@click.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@fail_on_option(SUBJECTS, "unpruned,dense>20%,dla.sparsity.output_maps")
@click.option("--verbose", is_flag=True, help="Also tell what does not decide: warnings and notes.")
@network_options
@json_option
@click.pass_context
def check(
    context: click.Context,
    model: Path,
    fail_on: tuple[FailCondition, ...],
    verbose: bool,
    options: Options,
    as_json: bool,
) -> None:
    """Say of which layers of an ONNX MODEL the device skips zeros of weights, and every rule that stands against it.

    What counts are the weights as the device stores them. What was not said is taken as `dryfit estimate` takes it:
    the accelerator, all its precisions, scales for every tensor, fallback to the GPU.
    """
    from dryfit.answers.defaults import with_every_precision
    from dryfit.cli.sparsity_report import sparsity_outcomes, sparsity_report
    from dryfit.cli.sparsity_tables import print_sparsity

    asked, assumed = with_every_precision(NetworkOptions.said(options))
    report = sparsity_report(model, asked, assumed)
    found = sparsity_outcomes(fail_on, report)
    if as_json:
        print_json({**report, "conditions": [attrs.asdict(outcome) for outcome in found]})
    else:
        print_sparsity(report, verbose=verbose)
    context.exit(print_failed(found))
