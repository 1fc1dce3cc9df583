"""The parts of a report, in their order. Each is a module with a function `part(facts)`; None leaves the part out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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


def parts_of(facts: ReportFacts) -> list[Part]:
    """Return the parts that have something to say."""
    return [part for part in (make(facts) for make in PARTS) if part is not None]
