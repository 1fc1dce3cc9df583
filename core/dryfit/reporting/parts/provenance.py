"""How the report was made: command, versions, plugins, assumptions, and how certain each rule is."""

from __future__ import annotations

from collections import Counter

from dryfit.answers.installation import version_text
from dryfit.answers.text import Block, Entries, Line, Table
from dryfit.reporting.facts import ReportFacts
from dryfit.reporting.figures import Part


def part(facts: ReportFacts) -> Part:
    """The part about the report itself."""
    found = facts.check
    blocks: list[Block] = [Line(f"$ {facts.command}"), Line(version_text())]
    if found.assumed:
        blocks.append(Line(f"Defaults: {' '.join(found.assumed)}."))
    if found.overlays:
        blocks.append(Line(f"Overlays, which correct rules and estimates: {'; '.join(found.overlays)}."))
    if facts.variants[0].assumes_scales:
        blocks.append(Line("INT8 was requested without scales: every tensor is assumed to have one."))
    if found.simulated:
        blocks.append(Line(f"Simulated: {found.simulated}."))
    return Part(
        name="provenance",
        title="How this report was made",
        finding="Nothing was measured on a device: placements follow documented rules, and times are estimates.",
        blocks=[*blocks, _fidelity(facts)],
        details=[
            Entries("Active plugins", [(one.partition(" ")[0], one.partition(" ")[2], "") for one in found.plugins])
        ],
    )


def _fidelity(facts: ReportFacts) -> Table:
    rules = {
        one.rule: one.fidelity
        for layer in facts.check.layers
        for verdict in layer.verdicts.values()
        for one in (*verdict.violations, *verdict.warnings, *verdict.notes)
    }
    counted = Counter(rules.values())
    rows = [
        (fidelity, count, ", ".join(sorted(rule for rule in rules if rules[rule] == fidelity)))
        for fidelity, count in sorted(counted.items())
    ]
    return Table("Certainty of the rules that layers violate", ["fidelity", "rules", "which"], rows)
