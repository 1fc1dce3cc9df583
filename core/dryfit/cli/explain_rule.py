"""`dryfit explain-rule`: everything that is known of one rule, of whatever table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from dryfit.cli.console import json_option, print_json, print_line, print_table

if TYPE_CHECKING:
    from dryfit.answers.explain_rule import RuleExplanation


@click.command()
@click.argument("words", metavar="[RULE]", required=False)
@click.option("--list", "is_listed", is_flag=True, help="List all rules, each in one line.")
@json_option
@click.pass_context
def explain_rule(context: click.Context, words: str | None, is_listed: bool, as_json: bool) -> None:
    """Explain one RULE, such as dla.convolution.kernel: what it says, where it holds, who says so.

    The first words of ids, such as dla.convolution, list the rules that begin so. Rules of `dryfit qdq lint` begin
    with qdq, those on modes with explicit, strongly_typed or standalone, those on copies with reformat, those on
    limits of memory with memory_pool. A number by which documents cite rules, such as SS-02, finds them too.
    """
    from dryfit.answers.explain_rule import all_rules, find_rules

    if is_listed == (words is not None):
        raise click.UsageError("Give one RULE, or --list", context)
    families = all_rules() if words is None else find_rules(words)
    rules = [rule for family in families for rule in family.rules]
    if as_json:
        is_one = len(rules) == 1 and not is_listed
        print_json(rules[0].to_dict() if is_one else {"rules": [rule.to_dict() for rule in rules]})
    elif len(rules) == 1:
        print_line(str(rules[0]))
    else:
        for family in families:
            if family.rules:
                print_rules(f"{family.word}: {family.title}" if len(families) > 1 else "", family.rules)


def print_rules(title: str, rules: Sequence[RuleExplanation]) -> None:
    """Several rules of one family, one line each."""
    if all(rule.limit for rule in rules):
        scopes = [rule.limit.scope if rule.limit else "" for rule in rules]
        columns = ["rule", "what it says", "holds for", "when it fails"]
        rows = [
            (rule.rule, rule.text, scope or "everywhere", rule.severity)
            for rule, scope in zip(rules, scopes, strict=True)
        ]
        print_table(title, columns, rows)
    else:
        print_table(
            title, ["rule", "what it says", "severity"], [(rule.rule, rule.text, rule.severity) for rule in rules]
        )
