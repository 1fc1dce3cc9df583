"""Rules whose ids begin alike, as they are found and told, of whatever table they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

Facts = Mapping[str, Any]
"""A rule as plain data: `rule` is its id, `text` its sentence, `number` how documents cite it, "" for none."""


@attrs.frozen
class RuleFamily:
    """The rules of one table, or of several that are told alike.

    Attributes:
        word: the first word of the ids.
        title: what the rules are about.
        load: gives the rules in the order in which they are told; called when one of them may be asked for.
        shown: label to what is told of a rule after its sentence; empty texts are left out.
        columns: titles of the table of several rules.
        row: the cells of a rule there.
    """

    word: str
    title: str
    load: Callable[[], Sequence[Facts]]
    shown: Callable[[Facts], Mapping[str, str]]
    columns: Sequence[str]
    row: Callable[[Facts], Sequence[str]]

    def lines(self, facts: Facts) -> list[str]:
        """One rule in full."""
        told = {"cited as": facts["number"], **self.shown(facts)}
        return [
            f"{facts['rule']}: {facts['text']}",
            *(f"  {label:<13} {text}" for label, text in told.items() if text),
        ]


def numbers_of(facts: Facts) -> list[str]:
    """The numbers by which documents cite a rule."""
    return [number.strip() for number in facts["number"].split(",") if number.strip()]


def is_named(facts: Facts, words: str) -> bool:
    """Whether words are a rule's id, in any case."""
    return bool(facts["rule"] == words.lower())


def is_below(facts: Facts, words: str) -> bool:
    """Whether words are the first ones of a rule's id, in any case."""
    return bool(facts["rule"].startswith(f"{words.lower()}."))


def is_cited(facts: Facts, words: str) -> bool:
    """Whether words are a number of a rule, or the letters that it begins with, in any case."""
    asked = words.upper()
    return any(number == asked or number.startswith(f"{asked}-") for number in numbers_of(facts))
