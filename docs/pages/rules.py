"""The pages of rules on modes, and of the numbers by which pages cite rules; `mode-rules.md`, `rule-numbers.md`."""

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

Written by `make docs` from the rules. They are looked at before anything is placed or built, and all that is broken is
told in one error. Why they are errors: [Quantization modes](../decisions/quantization-modes.md).
"""

NUMBERS_HEAD = """# Numbers of rules

Written by `make docs` from the rules. Pages cite some rules of the DLA by a number; `dryfit explain-rule` takes it in
place of the rule's id, and takes the letters alone for all rules that are numbered so. Where several rules have one
number they say it together, and a rule that has two numbers says both.
`IO` is for formats of inputs and outputs, `RF` for copies between formats, `MP` for memory pools, `SA` for standalone
loadables, `SS` for structured sparsity.

| number | rule | what it says |
|---|---|---|
"""


def mode_rules_page() -> str:
    """The page of what excludes one another in a network and its config."""
    sections: Sequence[tuple[str, Sequence[Rule]]] = (
        ("Every build", FLAG_RULES),
        ("Networks whose scales a calibrator finds", IMPLICIT_RULES),
        ("Networks with quantize or dequantize layers", EXPLICIT_RULES),
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
