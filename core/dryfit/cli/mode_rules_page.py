"""The page of what excludes one another in a network and its config; published as `mode-rules.md`."""

from __future__ import annotations

from dryfit.builder.explicit_quantization.mode_rule import ModeRule
from dryfit.builder.explicit_quantization.mode_rules import EXPLICIT_RULES, STRONGLY_TYPED_RULES
from dryfit.builder.segments.standalone import STANDALONE_RULES

HEAD = """# Rules on modes

Written by `make docs` from the rules. They are looked at before anything is placed or built, and all that is broken is
told in one error. Why they are errors: [Quantization modes](../decisions/quantization-modes.md).
"""


def mode_rules_page() -> str:
    """The page."""
    parts = [HEAD]
    for title, rules in (
        ("Networks with quantize or dequantize layers", EXPLICIT_RULES),
        ("Strongly typed networks", STRONGLY_TYPED_RULES),
        ("Standalone loadables (engine capability DLA_STANDALONE)", STANDALONE_RULES),
    ):
        parts += [f"## {title}\n", *map(_rule, rules)]
    return "\n".join(parts)


def _rule(rule: ModeRule) -> str:
    return f"### {rule.id}\n\n{rule.text}.\n\n* What to do: {rule.remedy}.\n* Source: {rule.source}.\n"
