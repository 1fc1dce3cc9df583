"""What `dryfit explain-rule` tells of the rules on modes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dryfit.cli.told_rules import tell_rules

if TYPE_CHECKING:
    from dryfit.builder.explicit_quantization.mode_rule import ModeRule


def mode_rules() -> Mapping[str, ModeRule]:
    """Id to rule."""
    from dryfit.builder.explicit_quantization.mode_rules import EXPLICIT_RULES, STRONGLY_TYPED_RULES
    from dryfit.builder.segments.standalone import STANDALONE_RULES

    return {rule.id: rule for rule in (*EXPLICIT_RULES, *STRONGLY_TYPED_RULES, *STANDALONE_RULES)}


def told_of_mode(words: str, as_json: bool) -> bool:
    """Tell of the rule of this id, or of those whose ids begin with these words; returns whether there is one.

    Args:
        words: an id or its first words, in any case.
        as_json: for programs.
    """
    if words.lower().partition(".")[0] not in ("explicit", "strongly_typed", "standalone"):
        return False
    every = {id_: _facts(rule) for id_, rule in mode_rules().items()}
    labels = (("when it fails", "severity"), ("what to do", "remedy"), ("source", "source"))
    return tell_rules(words, every, labels, {"rule": "rule", "what it says": "text"}, as_json)


def _facts(rule: ModeRule) -> dict[str, str]:
    severity = "the network is not built"
    return {"rule": rule.id, "text": rule.text, "severity": severity, "remedy": rule.remedy, "source": rule.source}
