"""The pages of mode rules and of rule numbers: `mode-rules.md`, `rule-numbers.md`."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.answers.explain_rule import all_rules
from dryfit.builder.config.mode_rules import (
    EXPLICIT_RULES,
    FLAG_RULES,
    IMPLICIT_RULES,
    STRONGLY_TYPED_RULES,
)
from dryfit.builder.config.standalone import STANDALONE_OUTCOMES, STANDALONE_RULES
from dryfit.rule import Rule

MODES_HEAD = """# Rules on modes

Written by `make docs` from the rules. They are checked before anything is placed or built, and one error
reports all violations. Why they are errors: [Quantization modes](../decisions/quantization-modes.md).
"""

NUMBERS_HEAD = """# Rule numbers

Written by `make docs` from the rules. Some pages cite DLA rules by number. `dryfit explain-rule` accepts the number in
place of the rule's id, and the letters alone for all rules of a group. Several rules may share a number, and a rule may
have more than one.
`IO` stands for formats of inputs and outputs, `RF` for format copies, `MP` for memory pools, `SA` for standalone
loadables, `SS` for structured sparsity.

| number | rule | requirement |
|---|---|---|
"""


def mode_rules_page() -> str:
    """The page of rules on combinations of network and config options."""
    sections: Sequence[tuple[str, Sequence[Rule]]] = (
        ("Every build", FLAG_RULES),
        ("Networks with calibrated scales (implicit quantization)", IMPLICIT_RULES),
        ("Networks with quantize or dequantize layers (explicit quantization)", EXPLICIT_RULES),
        ("Strongly typed networks", STRONGLY_TYPED_RULES),
        ("Standalone loadables (engine capability DLA_STANDALONE)", STANDALONE_RULES),
        ("Standalone loadables, once segments and copies are known", STANDALONE_OUTCOMES),
    )
    parts = [MODES_HEAD]
    for title, rules in sections:
        parts += [f"## {title}\n", *map(rule_section, rules)]
    return "\n".join(parts)


def rule_section(rule: Rule) -> str:
    """A rule on a page."""
    cited = f"* Cited as {rule.number}.\n" if rule.number else ""
    return f"### {rule.id}\n\n{rule.text}.\n\n* What to do: {rule.remedy}.\n* Source: {rule.source}.\n{cited}"


def rule_numbers_page() -> str:
    """The page of numbers, in their order."""
    rows = [(number, one.rule, one.text) for family in all_rules() for one in family.rules for number in one.numbers]
    return NUMBERS_HEAD + "".join(f"| {number} | `{rule}` | {_cell(text)} |\n" for number, rule, text in sorted(rows))


def _cell(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}".replace("|", "\\|")
