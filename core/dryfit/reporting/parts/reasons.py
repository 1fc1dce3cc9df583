"""Reasons: the rules for which layers leave the device, by their share, and what each edit of the model changes."""

from __future__ import annotations

from dryfit.answers.explain_text import explanation_blocks
from dryfit.answers.text import Table
from dryfit.reporting.facts import ReportFacts
from dryfit.reporting.figures import WIDTH, Figure, Part, chart
from dryfit.short_text import count_text


def part(facts: ReportFacts) -> Part | None:
    """The part about reasons; None if no layer leaves the device."""
    found = facts.explanation
    if not found.causes:
        return None
    summary = found.summary
    leaving = f"{summary.layers_leaving} of {count_text(summary.layers, 'layer')}"
    rows = [
        (one.rule, len(one.layers), f"{one.macs:,}", f"{one.macs_share:.1%}", one.remedy, one.fidelity, one.source)
        for one in found.causes
    ]
    return Part(
        name="reasons",
        title="Why layers leave the device",
        finding=f"{leaving}, with {summary.macs_leaving_share:.1%} of the multiply-accumulates, leave {found.device} "
        f"for {count_text(len(found.causes), 'rule')}.",
        figures=[_figure(facts)],
        blocks=[Table("Rules", ["rule", "layers", "MACs", "share", "remedy", "fidelity", "source"], rows)],
        details=list(explanation_blocks(found)),
    )


def _figure(facts: ReportFacts) -> Figure:
    causes = facts.explanation.causes
    values = [{"rule": one.rule, "layers": len(one.layers), "share": one.macs_share} for one in causes]
    specification = {
        "width": WIDTH // 2,
        "data": {"values": values},
        "mark": "bar",
        "encoding": {
            "y": {"field": "rule", "type": "nominal", "title": None, "sort": None, "axis": {"labelLimit": 300}},
            "x": {"field": "layers", "type": "quantitative", "title": "layers", "axis": {"tickMinStep": 1}},
        },
    }
    said = "; ".join(f"{one.rule}: {count_text(len(one.layers), 'layer')}" for one in causes)
    return chart("reasons", "Layers by violated rule", said, specification)
