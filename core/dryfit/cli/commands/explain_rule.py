"""`dryfit explain-rule`: everything that is known of one rule, of whatever table."""

from __future__ import annotations

import click

from dryfit.cli import completion
from dryfit.cli.console import answer_options, show_answer


@click.command()
@click.argument("words", metavar="[RULE]", required=False, shell_complete=completion.rules)
@click.option("--list", "is_listed", is_flag=True, help="List all rules, one per line.")
@answer_options
@click.pass_context
def explain_rule(context: click.Context, words: str | None, is_listed: bool, as_json: bool) -> None:
    """Explain one RULE, such as dla.convolution.kernel: its requirement, scope and source.

    A prefix, such as dla.convolution, lists all rules that start with it. Rules of `dryfit qdq lint` start with qdq,
    mode rules with explicit, strongly_typed or standalone, rules on copies with reformat, and rules on memory limits
    with memory_pool. Rule numbers in documents, such as SS-02, are accepted too.
    """
    from dryfit.answers.explain_rule import RulesAnswer, all_rules, find_rules

    if is_listed == (words is not None):
        raise click.UsageError("Pass one RULE, or --list", context)
    found = RulesAnswer(all_rules() if words is None else find_rules(words))
    is_one = words is not None and len(found.rules) == 1
    show_answer(found.rules[0] if is_one else found, as_json=as_json)
