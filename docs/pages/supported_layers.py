"""The page of supported layers for the devices that come with dryfit, from their limit tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dryfit.plugins.plugin_registry import PluginRegistry
from dryfit.target.limits import LimitTable, Rule
from dryfit.target.target import Target

_HEAD = """# Supported layers

Written by `make docs` from the limit tables of the targets.

Each row is one rule. Verdicts and messages show its id, and `dryfit explain-rule ID` explains it. A layer runs on a
device if it meets every rule that applies to it; all violations are reported at once. *Documented* rules are stated in
the source that is cited; *inferred* ones follow from builder logs or from our reading; *confirmed* ones were tested on
the device. C, H and W are the last three extents of a tensor, and everything before them is batch.
"""


def supported_layers_page() -> str:
    """The page, in Markdown. Other installed targets are not on it."""
    targets = PluginRegistry(disabled="*").targets().values()
    return _HEAD + "".join(map(target_section, targets))


def target_section(target: Target) -> str:
    """The section of one device, in Markdown; "" for a device without limits."""
    table = target.limits
    if table is None:
        return ""
    versions = ", ".join(".".join(map(str, version)) for version in target.software_versions)
    platforms = ", ".join(f"`{platform.name}` ({platform.title})" for platform in target.platforms)
    return "".join(
        [
            f"\n## {target.device}: {target.title}\n",
            f"\nPlatforms: {platforms}." + (f" Software: {versions}.\n" if versions else "\n"),
            *_kind_lists(table),
            *(_kind_section(heading, listed) for heading, listed in _by_kinds(table.all_rules)),
        ]
    )


def _by_kinds(rules: Iterable[Rule]) -> Iterable[tuple[str, Sequence[Rule]]]:
    """Heading to rules, in the order of the table."""
    found: dict[str, list[Rule]] = {}
    for rule in rules:
        found.setdefault(", ".join(sorted(rule.kinds)) or "Every layer", []).append(rule)
    return found.items()


def _kind_lists(table: LimitTable) -> Iterable[str]:
    if table.supported_kinds is None:
        yield "\nEvery layer kind is supported, within these limits.\n"
        return
    yield f"\nSupported layer kinds, within the limits below: {_listed(sorted(table.supported_kinds))}.\n"
    for heading, reasons in (
        ("Unsupported layer kinds", table.unsupported),
        ("Layer kinds without rules yet, which go to the fallback device", table.unmodelled),
    ):
        by_reason: dict[str, list[str]] = {}
        for kind, reason in sorted(reasons.items()):
            by_reason.setdefault(reason, []).append(kind)
        if by_reason:
            yield f"\n{heading}:\n\n"
            yield from (f"* {_listed(kinds)}: {reason}.\n" for reason, kinds in by_reason.items())


def _kind_section(heading: str, rules: Sequence[Rule]) -> str:
    rows = [
        f'| <a id="{rule.id}"></a>`{rule.id}` | '
        f"{_cell(rule.text)}{_note(rule)} | {_cell(rule.scope) or 'all'} | {rule.fidelity} | "
        f"{_cell(rule.source)} |\n"
        for rule in rules
    ]
    # The anchor of a rule is its id, so that `supported-layers.md#dla.convolution.kernel` leads to it.
    return f"\n### {heading}\n\n| rule | | applies to | fidelity | source |\n|---|---|---|---|---|\n" + "".join(rows)


def _note(rule: Rule) -> str:
    return "" if rule.severity == "violation" else f" ({rule.severity} only)"


def _listed(kinds: Sequence[str]) -> str:
    return ", ".join(f"`{kind}`" for kind in kinds)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
