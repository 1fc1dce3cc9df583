"""What `dryfit explain-rule` tells of the rules of `dryfit qdq lint`."""

from __future__ import annotations

from collections.abc import Iterable

from dryfit.cli.told_rules import tell_rules


def lint_rule_ids() -> Iterable[str]:
    """The ids of all rules of the lint."""
    from dryfit.quantization.lint import all_lint_rules

    return all_lint_rules()


def told_of_lint(words: str, as_json: bool) -> bool:
    """Tell of the rule of this id, or of those whose ids begin with these words; returns whether there is one.

    Args:
        words: an id or its first words, in any case.
        as_json: for programs.
    """
    if words.lower().partition(".")[0] != "qdq":
        return False
    from dryfit.cli.qdq_report import rule_data
    from dryfit.quantization.lint import all_lint_rules

    every = {id_: rule_data(rule) for id_, rule in all_lint_rules().items()}
    labels = (("severity", "severity"), ("what to do", "remedy"), ("source", "source"))
    columns = {"rule": "rule", "what it says": "text", "severity": "severity"}
    return tell_rules(words, every, labels, columns, as_json)
