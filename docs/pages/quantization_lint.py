"""The page of the rules of `dryfit qdq lint`; published as `quantization-lint.md`."""

from __future__ import annotations

from dryfit.quantization.lint import SEVERITIES, all_lint_rules
from dryfit.rule import Rule

HEAD = """# Q/DQ lint rules

Written by `make docs` from the rules. `dryfit qdq lint` checks these rules, and `dryfit explain-rule` shows
one; [Quantize explicitly](../how-to/quantize-explicitly.md) shows how.
"""

TITLES = {
    "error": "Errors: unsupported on devices, or computed differently",
    "warning": "Warnings: lower accuracy or higher latency",
    "note": "Notes: it is worth knowing",
}


def lint_page() -> str:
    """The page."""
    parts = [HEAD]
    for severity in SEVERITIES:
        rules = [rule for rule in all_lint_rules().values() if rule.severity == severity]
        parts.append(f"## {TITLES[severity]}\n")
        parts += [_rule(rule) for rule in rules]
    return "\n".join(parts)


def _rule(rule: Rule) -> str:
    lines = [f"### {rule.id}", "", f"{rule.text}.", ""]
    lines += [f"* Found: {_looked_for(rule)}", f"* What to do: {rule.remedy}.", f"* Source: {rule.source}.", ""]
    return "\n".join(lines)


def _looked_for(rule: Rule) -> str:
    """What the rule's own words say that it finds, on one line."""
    return " ".join((rule.finder.__doc__ or "").split())
