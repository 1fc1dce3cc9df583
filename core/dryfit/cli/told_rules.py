"""How `dryfit explain-rule` tells of rules that are more than those of devices: one in full, or several in a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dryfit.cli.console import print_json, print_line, print_table

Facts = Mapping[str, Any]
"""A rule as plain data; `rule` and `text` are its id and its sentence."""


def tell_rules(
    words: str, every: Mapping[str, Facts], labels: Sequence[tuple[str, str]], columns: Mapping[str, str], as_json: bool
) -> bool:
    """Tell of the rule of an id, or of those whose ids begin with these words; returns whether there is one.

    Args:
        words: an id or its first words, in any case.
        every: id to facts.
        labels: what is told of one rule after its sentence: (label, key of the facts).
        columns: title to key of the table of several.
        as_json: for programs.
    """
    asked = words.lower()
    if asked in every:
        facts = every[asked]
        if as_json:
            print_json(facts)
            return True
        print_line(f"{facts['rule']}: {facts['text']}")
        for label, key in labels:
            print_line(f"  {label:<13} {facts[key]}")
        return True
    below = [facts for id_, facts in every.items() if id_.startswith(f"{asked}.")]
    if below and as_json:
        print_json({"rules": below})
    elif below:
        print_table("", list(columns), [tuple(facts[key] for key in columns.values()) for facts in below])
    return bool(below)
