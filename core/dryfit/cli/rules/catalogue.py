"""All rules that messages cite by an id or documents by a number, and how one is found among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dryfit.cli.rules.device_rules import device_family
from dryfit.cli.rules.family import Facts, RuleFamily, is_below, is_cited, is_named
from dryfit.cli.rules.stated_rules import stated_families
from dryfit.errors import UnknownNameError

LIST_COMMAND = "dryfit explain-rule --list"

FoundRules = Sequence[tuple[RuleFamily, Sequence[Facts]]]
"""Families, each with those of its rules that were asked for."""


def rule_families() -> list[RuleFamily]:
    """Those of all installed devices, and the others."""
    from dryfit.plugins import registry

    return [*map(device_family, registry.targets().values()), *stated_families()]


def all_rules() -> FoundRules:
    """Every rule."""
    return [(family, family.load()) for family in rule_families()]


def find_rules(words: str) -> FoundRules:
    """The rule of this id; else the rules that are cited so, or whose ids begin with these words.

    Args:
        words: an id or its first words, or a number such as SS-02 or its letters; in any case.

    Raises:
        UnknownNameError: there is none. Names the closest, and counts the others.
    """
    found = [(family, family.load()) for family in _families_of(words.lower().partition(".")[0])]
    tests: Sequence[Callable[[Facts, str], bool]] = (is_named, is_cited, is_below)
    for test in tests:
        fitting = [(family, [one for one in rules if test(one, words)]) for family, rules in found]
        if any(rules for _, rules in fitting):
            return [(family, rules) for family, rules in fitting if rules]
    raise unknown_rule(words)


def unknown_rule(words: str) -> UnknownNameError:
    """The error for what is no rule: the closest are ids, or first words of them."""
    every = all_rules()
    counts = ", ".join(f"{family.word} ({len(rules)})" for family, rules in every if rules)
    ids = [one["rule"] for _, rules in every for one in rules]
    first_words = {one.rpartition(".")[0] for one in ids}
    return UnknownNameError("rule", words, {*ids, *first_words}, told=f"{counts}; `{LIST_COMMAND}` lists them all")


def _families_of(word: str) -> list[RuleFamily]:
    """The family of ids that begin with a word, without loading the others; all where there is none such."""
    from dryfit.plugins import registry

    stated = [family for family in stated_families() if family.word == word]
    if stated:
        return stated
    target = registry.find_target(word)
    return rule_families() if target is None else [device_family(target)]
