"""The pages of the site with the rules of a device, one section a rule."""

from __future__ import annotations

from collections.abc import Iterator

from dryfit.answers.explain_rule import RuleExplanation, RuleFamily, all_rules

_HEAD = """# Rules of the {device}

Generated from the target's limit table. `dryfit explain-rule ID` prints the same facts, and
[Supported layers](../supported-layers.md) has all rules in tables. *Just inside* and *just outside* are values on both
sides of a limit, which the tests use.
"""


def rule_page(device: str) -> str:
    """The page of a device's rules, by layer kind."""
    family: RuleFamily = next(one for one in all_rules() if one.word == device.lower())
    by_kinds: dict[str, list[RuleExplanation]] = {}
    for rule in family.rules:
        kinds = ", ".join(rule.limit.kinds) if rule.limit else ""
        by_kinds.setdefault(kinds.replace("_", " ").capitalize() or "Every layer", []).append(rule)
    parts = [_HEAD.format(device=device)]
    for kinds, rules in by_kinds.items():
        parts += [f"\n## {kinds}\n", *(piece for rule in rules for piece in _section(rule))]
    return "".join(parts)


def _section(rule: RuleExplanation) -> Iterator[str]:
    is_name = "_" in rule.text.split(maxsplit=1)[0]  # a parameter, such as num_groups
    text = rule.text if is_name else f"{rule.text[:1].upper()}{rule.text[1:]}"
    yield f'\n<a id="{rule.rule}"></a>\n\n### {rule.rule}\n\n{text}.\n\n'
    limit = rule.limit
    if limit:
        yield f"* Applies to: {limit.scope or 'every platform, version and precision'}.\n"
        for title, values in (("Just inside", limit.boundaries.inside), ("Just outside", limit.boundaries.outside)):
            if values:
                yield f"* {title}: {', '.join(f'`{value}`' for value in values)}.\n"
    yield f"* When it fails: {rule.consequence}.\n"
    if rule.remedy:
        yield f"* What to do: {rule.remedy}.\n"
    if rule.number:
        yield f"* Cited as {rule.number}.\n"
    yield f"* Source ({rule.fidelity}): {rule.source}.\n"
