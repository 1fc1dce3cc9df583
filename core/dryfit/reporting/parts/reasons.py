"""Reasons: the rules for which layers leave the device, by their share, and what each edit of the model changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dryfit.answers.explain_text import explanation_blocks
from dryfit.answers.explained_layers import FailedRule
from dryfit.answers.model_edits import changes
from dryfit.answers.placement_text import listed_names
from dryfit.answers.text import Block, Entries, Line, Table, table_name
from dryfit.estimate_text import duration
from dryfit.onnx.edit_report import Proposal
from dryfit.reporting.facts import ReportFacts
from dryfit.reporting.figures import Figure, Part, bars, chart, label, percent
from dryfit.short_text import count_text, likeness, with_short_names

PANEL = 150
"""Pixels of each of the panels of a picture."""
MOST_TICKS = 6
"""Numbers up to which an axis has a tick for each."""
MOST_LAYERS = 30
"""Layers with violated rules that are listed without asking for details."""
MOST_EDITS = 12
"""Edits in the picture, those that save the most; the table has all."""


def part(facts: ReportFacts) -> Part | None:
    """The part about reasons; None if no layer leaves the device."""
    found = facts.explanation
    if not found.summary.layers_leaving:
        return None
    has_rules, layers = bool(found.causes), [_layer_table(facts)]
    return Part(
        name="reasons",
        title="Why layers leave the device",
        finding=_finding(facts),
        figures=[*([_rules(facts)] if has_rules else []), *_edits(facts)],
        blocks=[
            *([_rule_table(facts)] if has_rules else []),
            *_other_table(facts),
            *_edit_table(facts),
            *(layers if len(layers[0].rows) <= MOST_LAYERS else []),
        ],
        details=[*(layers if len(layers[0].rows) > MOST_LAYERS else []), *explanation_blocks(found)],
        basis="" if facts.estimate is None else "Times are estimates; nothing was measured.",
        numbers=_numbers(facts),
    )


def _numbers(facts: ReportFacts) -> dict[str, Any]:
    """The time of the steps of each rule's layers, its share, and how many layers violate a rule."""
    causes = facts.explanation.causes
    others = other_layers(facts)
    return {
        "layers_with_rules": len({name for one in causes for name in one.layers}),
        "layers_without_rules": sum(map(len, others.values())),
        "microseconds": {one.rule: rule_time(facts, one) for one in causes},
        "latency_share": {one.rule: _time_share(facts, one) for one in causes},
        "layers_share": {one.rule: len(one.layers) / (facts.explanation.summary.layers or 1) for one in causes},
    }


def _finding(facts: ReportFacts) -> str:
    found, summary = facts.explanation, facts.explanation.summary
    text = (
        f"{summary.layers_leaving} of {count_text(summary.layers, 'layer')}, with "
        f"{percent(summary.macs_leaving_share, 1)} of the multiply-accumulates, do not run on {found.device}: "
        f"{', '.join(_ways(facts))}"
    )
    best = found.together or next(iter(found.edits), None)
    if best is None and not facts.are_edits_searched:
        return f"{text}."
    if best is None:
        return f"{text}; no known edit of the model helps."
    edits = "the suggested edit" if len(best.choices) == 1 else f"{len(best.choices)} edits together"
    return f"{text}; with {edits}, {best.cost.refused_layers} would leave instead of {best.before.refused_layers}."


def _ways(facts: ReportFacts) -> Iterator[str]:
    found = facts.explanation
    violating = {name for one in found.causes for name in one.layers}
    if violating:
        yield f"{len(violating)} for {count_text(len(found.causes), 'rule')}"
    others = list(other_layers(facts).values())
    if others:
        reasons = "another reason" if len(others) == 1 else f"{len(others)} other reasons"
        yield f"{sum(map(len, others))} for {reasons}"


def other_layers(facts: ReportFacts) -> dict[str, list[str]]:
    """Return the layers that leave without violating a rule by cause, as segments that do not fit have."""
    found: dict[str, list[str]] = {}
    device = facts.explanation.device
    for one in facts.explanation.layers:
        has_moved = one.device != device and one.segment is not None and one.supported is not None
        if (one.device is None or has_moved) and not one.violations:
            found.setdefault(likeness(one.cause), []).append(one.name)
    return found


def _other_table(facts: ReportFacts) -> Iterator[Block]:
    causes = {one.name: one.cause for one in facts.explanation.layers}
    rows = [
        (len(layers), with_short_names(causes[layers[0]]), listed_names([label(name) for name in layers]))
        for layers in other_layers(facts).values()
    ]
    if rows:
        yield Table("Other reasons, in the words of the first layer", ["layers", "reason", "which"], rows)


def rule_time(facts: ReportFacts, cause: FailedRule) -> float | None:
    """Return the estimated time of the steps that have layers of a rule; None if the time of a layer is unknown."""
    cost, layers = facts.estimate, set(cause.layers)
    if cost is None:
        return None
    steps = [one for one in cost.layers if layers.intersection(one.layers)]
    timed = {one.index for one in cost.segments if one.microseconds is not None and one.estimate and one.estimate.steps}
    held = {one.index for one in cost.segments if layers.intersection(one.layers)}
    return sum(one.microseconds for one in steps) if held <= timed else None


def _time_share(facts: ReportFacts, cause: FailedRule) -> float | None:
    time = rule_time(facts, cause)
    total = None if facts.estimate is None else facts.estimate.network.latency_microseconds
    return None if time is None or not total else time / total


def _rules(facts: ReportFacts) -> Figure:
    causes, total = facts.explanation.causes, facts.explanation.summary.layers or 1
    measures = ["layers", "MACs", "estimated latency"]
    values = [
        {"rule": one.rule, "of": of, "share": share}
        for one in causes
        for of, share in zip(measures, (len(one.layers) / total, one.macs_share, _time_share(facts, one)), strict=True)
        if share is not None
    ]
    rules = [one.rule for one in causes]
    specification = {
        "hconcat": [
            bars(
                [one for one in values if one["of"] == of],
                "rule",
                "share",
                f"share of {of}",
                order=rules,
                has_names=of == measures[0],
                width=PANEL,
                row_height=22,
                format=".3~%",
                tickCount=2,
            )
            for of in measures
            if any(one["of"] == of and one["share"] for one in values)
        ],
        "spacing": 16,
    }
    said = "; ".join(
        f"{one.rule}: {count_text(len(one.layers), 'layer')}, {percent(one.macs_share, 1)} of MACs" for one in causes
    )
    return chart("rules", "Violated rules by their shares; a layer counts for each of its rules", said, specification)


def _rule_table(facts: ReportFacts) -> Table:
    rows = []
    for one in facts.explanation.causes:
        time, share = rule_time(facts, one), _time_share(facts, one)
        rows.append(
            (
                one.rule,
                len(one.layers),
                f"{one.macs:,} ({percent(one.macs_share, 1)})",
                "-" if time is None else f"{duration(time)}" + ("" if share is None else f" ({percent(share, 1)})"),
                one.remedy or "no known edit helps",
                one.fidelity,
                one.source,
            )
        )
    columns = ["rule", "layers", "MACs", "estimated time of their steps", "remedy", "fidelity", "source"]
    return Table("Rules", columns, rows)


def _layer_table(facts: ReportFacts) -> Table:
    rows = [
        (violation.rule, table_name(layer.name), violation.parameter, violation.actual, violation.allowed)
        for cause in facts.explanation.causes
        for layer in facts.explanation.layers
        for violation in layer.violations
        if violation.rule == cause.rule
    ]
    return Table("Layers by rule", ["rule", "layer", "parameter", "found", "allowed"], rows)


# Edits ----------------------------------------------------------------------------------------------------------------


def _proposals(facts: ReportFacts) -> list[tuple[str, Proposal]]:
    found = facts.explanation
    together = [] if found.together is None else [("all together", found.together)]
    return [*((one.text, one) for one in found.edits), *together]


def _edits(facts: ReportFacts) -> Iterator[Figure]:
    proposals = _proposals(facts)
    shown = [*proposals[: MOST_EDITS - 1], proposals[-1]] if len(proposals) > MOST_EDITS else proposals
    if not shown:
        return
    device = facts.explanation.device
    panels = {"layers that leave": "layers", "loadables": "loadables", "copied KiB": "bytes"}
    values: list[dict[str, Any]] = []
    for text, one in shown:
        for measure, key in panels.items():
            pair = [_amount(cost, key) for cost in (one.before, one.cost)]
            if None not in pair:
                values.append({"edit": label(text), "of": measure, "before": pair[0], "after": pair[1]})
    names = [label(text) for text, _ in shown]
    specification = {
        "hconcat": [
            _dumbbells(measure, names, [one for one in values if one["of"] == measure])
            for measure in panels
            if any(one["of"] == measure for one in values)
        ],
        "spacing": 16,
    }
    said = "; ".join(f"{text}: {', '.join(changes(one.before, one.cost))}" for text, one in shown)
    title = f"Edits of the model for {device}: before (gray) and after (green)"
    yield chart("edits", title, said, specification)


def _amount(cost: Any, key: str) -> float | None:
    if key == "layers":
        return float(cost.refused_layers)
    if key == "loadables":
        return float(cost.loadables)
    return None if cost.border_bytes is None else cost.border_bytes / 1024


def _dumbbells(measure: str, names: Sequence[str], values: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    y = {
        "field": "edit",
        "type": "nominal",
        "title": None,
        "sort": names,
        "scale": {"domain": names},
        "axis": {"labelLimit": 300} if measure == "layers that leave" else None,
    }
    most = int(max(max(one["before"], one["after"]) for one in values))
    axis = {"values": list(range(most + 1)), "format": "d"} if most <= MOST_TICKS else {"tickCount": 4}
    x = {"type": "quantitative", "title": measure, "scale": {"zero": True}, "axis": axis}
    points = [
        {
            "mark": {"type": "point", "filled": True, "size": size, "opacity": 1, "color": color},
            "encoding": {"y": y, "x": {**x, "field": field}},
        }
        for field, color, size in (("before", "var(--muted)", 60), ("after", "var(--device-0)", 110))
    ]
    rule = {
        "mark": {"type": "rule", "color": "var(--muted)"},
        "encoding": {"y": y, "x": {**x, "field": "before"}, "x2": {"field": "after"}},
    }
    return {
        "width": PANEL,
        "height": {"step": 22},
        "data": {"values": list(values)},
        "layer": [rule, *points],
    }


def _edit_table(facts: ReportFacts) -> Iterator[Block]:
    found = facts.explanation
    rows = [
        (f"--apply {text}", one.title, count_text(len(one.places), "place"), *changes(one.before, one.cost))
        for text, one in _proposals(facts)
        if text != "all together"
    ]
    if rows:
        columns = ["option of dryfit explain", "change", "where", "layers that leave", "loadables", "copied bytes"]
        yield Table("Edits of the model, each applied alone: before -> after", columns, rows)
    if found.together is not None:
        before, after = found.together.before, found.together.cost
        words = zip(("layers that leave", "loadables", "copied bytes"), changes(before, after), strict=True)
        yield Line(f"All together (--apply {found.together.text}): {', '.join(f'{n} {t}' for n, t in words)}.")
    unmeasured = [(one.id, one.reason, "") for one in found.unmeasured_edits]
    yield Entries("Edits that could not be measured", unmeasured)
