"""What `dryfit explain-rule` tells of the rules of `dryfit qdq lint`."""

from __future__ import annotations

from collections.abc import Iterable

from dryfit.cli.console import print_json, print_line, print_table


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

    rules = all_lint_rules()
    if words.lower() in rules:
        facts = rule_data(rules[words.lower()])
        if as_json:
            print_json(facts)
            return True
        print_line(f"{facts['rule']}: {facts['text']}")
        for label, key in (("severity", "severity"), ("what to do", "remedy"), ("source", "source")):
            print_line(f"  {label:<13} {facts[key]}")
        return True
    below = [rule_data(rule) for id_, rule in rules.items() if id_.startswith(f"{words.lower()}.")]
    if below and as_json:
        print_json({"rules": below})
    elif below:
        rows = [(facts["rule"], facts["text"], facts["severity"]) for facts in below]
        print_table("", ["rule", "what it says", "severity"], rows)
    return bool(below)
