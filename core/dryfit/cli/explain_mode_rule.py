"""What `dryfit explain-rule` tells of the rules on modes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dryfit.cli.console import print_json, print_line, print_table

if TYPE_CHECKING:
    from dryfit.builder.mode_rule import ModeRule


def mode_rules() -> Mapping[str, ModeRule]:
    """Id to rule."""
    from dryfit.builder.mode_rules import EXPLICIT_RULES, STRONGLY_TYPED_RULES
    from dryfit.builder.standalone import STANDALONE_RULES

    return {rule.id: rule for rule in (*EXPLICIT_RULES, *STRONGLY_TYPED_RULES, *STANDALONE_RULES)}


def told_of_mode(words: str, as_json: bool) -> bool:
    """Tell of the rule of this id, or of those whose ids begin with these words; returns whether there is one.

    Args:
        words: an id or its first words, in any case.
        as_json: for programs.
    """
    if words.lower().partition(".")[0] not in ("explicit", "strongly_typed", "standalone"):
        return False
    rules, asked = mode_rules(), words.lower()
    if asked in rules:
        facts = _facts(rules[asked])
        if as_json:
            print_json(facts)
        else:
            print_line(f"{facts['rule']}: {facts['text']}")
            for label, key in (("when it fails", "severity"), ("what to do", "remedy"), ("source", "source")):
                print_line(f"  {label:<13} {facts[key]}")
        return True
    below = [_facts(rule) for id_, rule in rules.items() if id_.startswith(f"{asked}.")]
    if below and as_json:
        print_json({"rules": below})
    elif below:
        print_table("", ["rule", "what it says"], [(facts["rule"], facts["text"]) for facts in below])
    return bool(below)


def _facts(rule: ModeRule) -> dict[str, str]:
    severity = "the network is not built"
    return {"rule": rule.id, "text": rule.text, "severity": severity, "remedy": rule.remedy, "source": rule.source}
