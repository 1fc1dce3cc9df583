"""What `dryfit explain-rule` tells of the reasons for reformats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dryfit.cli.told_rules import tell_rules

if TYPE_CHECKING:
    from dryfit.builder.tensor_formats.reformat_rules import ReformatRule


def reformat_rules() -> Mapping[str, ReformatRule]:
    """Id to rule."""
    from dryfit.builder.tensor_formats.reformat_rules import REFORMAT_RULES

    return REFORMAT_RULES


def told_of_reformat(words: str, as_json: bool) -> bool:
    """Tell of the rule of this id, or of all of them for `reformat`; returns whether there is one.

    Args:
        words: an id or its first word, in any case.
        as_json: for programs.
    """
    if words.lower().partition(".")[0] != "reformat":
        return False
    every = {id_: _facts(rule) for id_, rule in reformat_rules().items()}
    labels = (("what to do", "remedy"), ("source", "source"))
    return tell_rules(words, every, labels, {"rule": "rule", "what it says": "text"}, as_json)


def _facts(rule: ReformatRule) -> dict[str, str]:
    return {"rule": rule.id, "text": rule.text, "remedy": rule.remedy, "source": rule.source}
