"""`dryfit explain-rule`: everything that is known of one rule, of whatever table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dryfit.cli.console import json_option, print_json, print_line, print_table

if TYPE_CHECKING:
    from dryfit.cli.rules.catalogue import FoundRules


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
    from dryfit.cli.rules.catalogue import all_rules, find_rules

    if is_listed == (words is not None):
        raise click.UsageError("Give one RULE, or --list", context)
    found = all_rules() if words is None else find_rules(words)
    rules = [one for _, of_family in found for one in of_family]
    if as_json:
        print_json(rules[0] if len(rules) == 1 and not is_listed else {"rules": rules})
    elif len(rules) == 1:
        family, _ = found[0]
        print_line("\n".join(family.lines(rules[0])))
    else:
        print_rules(found)


def print_rules(found: FoundRules) -> None:
    """Several rules, one line each, in a table for each family."""
    for family, rules in found:
        title = f"{family.word}: {family.title}" if len(found) > 1 else ""
        if rules:
            print_table(title, family.columns, [family.row(one) for one in rules])
