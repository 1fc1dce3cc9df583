"""Q/DQ: what became of each quantize and dequantize layer, and what deviates from TensorRT's recommendations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from dryfit.answers.lint import LintAnswer
from dryfit.answers.text import Block, Entries, Table, table_name, type_text
from dryfit.answers.traced_quantization import QuantizationOutcome, TracedQuantization
from dryfit.reporting.facts import ReportFacts
from dryfit.reporting.figures import Figure, Legend, Part, bars, chart
from dryfit.short_text import count_text, printable

LISTED = 12
"""Rows of a table above the details. Our choice."""

FREE = {
    QuantizationOutcome.FUSED,
    QuantizationOutcome.FOLDED,
    QuantizationOutcome.MERGED,
    QuantizationOutcome.CANCELLED,
    QuantizationOutcome.REMOVED,
    QuantizationOutcome.CLAIMED,
    QuantizationOutcome.OPERATOR,
}
"""Outcomes of layers that cost nothing of their own."""


def part(facts: ReportFacts) -> Part | None:
    """The part about Q/DQ; None for models without."""
    answer, linted = facts.numerics.quantization, facts.numerics.lint
    if linted is None:
        return None
    traced = () if answer is None else answer.quantizations
    return Part(
        name="qdq",
        title="Q/DQ",
        finding=_finding(traced, linted),
        figures=[*_outcomes(traced), *_findings(linted)],
        blocks=list(_blocks(traced, linted, facts.numerics.problems if answer is None else ())),
        details=list(_details(traced, linted)),
    )


def _finding(traced: Sequence[TracedQuantization], linted: LintAnswer) -> str:
    one = linted.summary
    counts = [(one.errors, "error"), (one.warnings, "warning"), (one.notes, "note")]
    found = ", ".join(count_text(number, noun) for number, noun in counts if number)
    if not traced:
        layers = one.quantizes + one.dequantizes
        return f"The outcome of {layers} Q/DQ layers is not known; lint: {found or 'no findings'}."
    costing = sum(each.outcome not in FREE for each in traced)
    stay = (
        f"{costing} of {len(traced)} Q/DQ layers remain as steps of their own"
        if costing
        else (f"all {len(traced)} Q/DQ layers are part of other steps")
    )
    return f"{stay[:1].upper()}{stay[1:]}; lint: {found or 'no findings'}."


def _outcomes(traced: Sequence[TracedQuantization]) -> Iterator[Figure]:
    counted = Counter((one.kind, one.outcome.value) for one in traced)
    if not counted:
        return
    values = [{"kind": kind, "outcome": outcome, "layers": count} for (kind, outcome), count in sorted(counted.items())]
    colors = {"quantize": "var(--device-3)", "dequantize": "var(--device-1)"}
    yield _bars("outcomes", "What became of Q/DQ layers", values, "outcome", "layers", Legend("kind", colors))


def _findings(linted: LintAnswer) -> Iterator[Figure]:
    values = [
        {"rule": one.rule, "severity": one.severity, "findings": one.findings} for one in linted.rules if one.findings
    ]
    if not values:
        return
    colors = {"error": "var(--unplaced)", "warning": "var(--warning)", "note": "var(--device-5)"}
    yield _bars("lint", "Lint findings by rule", values, "rule", "findings", Legend("severity", colors))


def _bars(name: str, title: str, values: list[dict[str, Any]], by: str, count: str, legend: Legend) -> Figure:
    specification = bars(
        values, by, count, count, legend=legend, order="-x", width=190, longest_label=140, tickMinStep=1, tickCount=4
    )
    said = "; ".join(f"{one[by]}: {count_text(one[count], count.removesuffix('s'))}" for one in values)
    return attrs.evolve(chart(name, title, printable(said, kept=""), specification), is_small=True)


_COLUMNS = ["layer", "kind", "type", "scale", "is", "where, or why not"]


def _blocks(traced: Sequence[TracedQuantization], linted: LintAnswer, problems: Sequence[str]) -> Iterator[Block]:
    yield Entries("Not answered", [(*problem.split(": ", 1), "") for problem in problems])  # type: ignore[misc]
    costing = [one for one in traced if one.outcome not in FREE]
    if costing:
        more = f" ({LISTED} of {len(costing)}; all in the details)" if len(costing) > LISTED else ""
        yield Table(f"Q/DQ layers that remain{more}", _COLUMNS, [_row(one) for one in costing[:LISTED]])
    rows = [
        (one.severity, one.rule, one.findings, table_name(linted.findings_of(one.rule)[0].layer), one.text, one.remedy)
        for one in linted.rules
        if one.findings
    ]
    if rows:
        yield Table("Lint", ["severity", "rule", "findings", "such as", "what must hold", "what to do"], rows)


def _details(traced: Sequence[TracedQuantization], linted: LintAnswer) -> Iterator[Block]:
    if traced:
        yield Table("Each Q/DQ layer", _COLUMNS, [_row(one) for one in traced])
    for rule in linted.rules:
        found = linted.findings_of(rule.rule)
        yield Entries(f"{rule.severity} {rule.rule} ({rule.source})", [(one.layer, one.text, "") for one in found])


def _row(one: TracedQuantization) -> tuple[object, ...]:
    return (
        table_name(one.name),
        one.kind,
        "-" if one.type is None else type_text(one.type),
        one.granularity if one.scale is None else f"{one.scale:.7g}",
        one.outcome.value,
        one.path_text,
    )
