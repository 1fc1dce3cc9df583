"""The parts of a report, in their order. Each is a module with a function `part(facts)`; None leaves the part out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dryfit.reporting.facts import ReportFacts
from dryfit.reporting.figures import Part
from dryfit.reporting.parts import (
    arithmetic,
    copies,
    cost,
    graph,
    matrix,
    memory,
    outcome,
    provenance,
    qdq,
    quantization,
    reasons,
    timeline,
)

PARTS: Sequence[Callable[[ReportFacts], Part | None]] = (
    outcome.part,
    graph.part,
    timeline.part,
    reasons.part,
    copies.part,
    memory.part,
    matrix.part,
    quantization.part,
    cost.part,
    arithmetic.part,
    qdq.part,
    provenance.part,
)


SHOW_EDITS = (outcome.part, reasons.part, copies.part)
"""The parts that show what the search for edits found."""


def parts_before_search(facts: ReportFacts) -> dict[Callable[[ReportFacts], Part | None], Part | None]:
    """Return the parts that can be made before edits are searched for; the charts of all parts are being drawn then."""
    made = {make: make(facts) for make in PARTS}
    return {make: part for make, part in made.items() if make not in SHOW_EDITS}


def parts_of(
    facts: ReportFacts, made: Mapping[Callable[[ReportFacts], Part | None], Part | None] | None = None
) -> list[Part]:
    """Return the parts that have something to say.

    Args:
        facts: the facts.
        made: parts that were made before.
    """
    known = made or {}
    parts = (known[make] if make in known else make(facts) for make in PARTS)
    return [part for part in parts if part is not None]
