"""What `dryfit explain-rule` tells of the reasons for reformats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dryfit.cli.console import print_json, print_line, print_table

if TYPE_CHECKING:
    from dryfit.builder.reformat_rules import ReformatRule


def reformat_rules() -> Mapping[str, ReformatRule]:
    """Id to rule."""
    from dryfit.builder.reformat_rules import REFORMAT_RULES

    return REFORMAT_RULES


def told_of_reformat(words: str, as_json: bool) -> bool:
    """Tell of the rule of this id, or of all of them for `reformat`; returns whether there is one.

    Args:
        words: an id or its first word, in any case.
        as_json: for programs.
    """
    if words.lower().partition(".")[0] != "reformat":
        return False
    rules, asked = reformat_rules(), words.lower()
    if asked in rules:
        facts = _facts(rules[asked])
        if as_json:
            print_json(facts)
        else:
            print_line(f"{facts['rule']}: {facts['text']}")
            for label, key in (("what to do", "remedy"), ("source", "source")):
                print_line(f"  {label:<13} {facts[key]}")
        return True
    below = [_facts(rule) for id_, rule in rules.items() if id_.startswith(f"{asked}.")]
    if below and as_json:
        print_json({"rules": below})
    elif below:
        print_table("", ["rule", "what it says"], [(facts["rule"], facts["text"]) for facts in below])
    return bool(below)


def _facts(rule: ReformatRule) -> dict[str, str]:
    return {"rule": rule.id, "text": rule.text, "remedy": rule.remedy, "source": rule.source}
