"""The outcome: does the model build, where do its layers run, what would help most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dryfit.answers.model_edits import change_text
from dryfit.answers.placement_text import outcome_lines
from dryfit.answers.text import Block, Table
from dryfit.estimate_text import duration
from dryfit.reporting.facts import ReportFacts
from dryfit.reporting.figures import WIDTH, Figure, Legend, Part, chart, device_color
from dryfit.short_text import count_text

MOST_CHANGES = 3
"""Changes that are listed in this part; all are in the part about reasons."""


def part(facts: ReportFacts) -> Part:
    """The part about the outcome."""
    return Part(
        name="outcome",
        title="Outcome",
        finding=_finding(facts),
        figures=[_shares(facts)],
        blocks=[*_device_table(facts), *_changes(facts)],
        details=list(outcome_lines(facts.check)),
        basis="" if facts.estimate is None else facts.estimate.note,
    )


def _finding(facts: ReportFacts) -> str:
    found, cost = facts.check, facts.estimate
    on = f"on {found.device} ({' '.join(filter(None, (found.platform, found.software)))})".replace(" ()", "")
    needs = " once it has INT8 scales" if facts.variants[0].lacks_only_scales else ""
    if found.refusals and not needs:
        return f"The model cannot be built {on}: {count_text(len(found.refusals), 'error')}."
    device, total = found.summary.layers_by_device.get(found.device, 0), found.summary.layers
    latency = "" if cost is None else f"; estimated latency {cost.network.latency_text}"
    return f"The model builds {on}{needs}: {device} of {count_text(total, 'layer')} run on {found.device}{latency}."


def _macs(facts: ReportFacts) -> Mapping[str, int] | None:
    """Multiply-accumulates by device; None if no answer has them."""
    if facts.estimate is None and facts.explained is None:
        return None
    found: dict[str, int] = {}
    for one in facts.estimate.segments if facts.estimate is not None else facts.explanation.layers:
        found[one.device or ""] = found.get(one.device or "", 0) + one.macs
    return found


def _rows(facts: ReportFacts) -> Iterator[tuple[str, int, int | None, float | None]]:
    """(device, layers, multiply-accumulates, microseconds)."""
    cost, macs = facts.estimate, _macs(facts)
    for device in facts.devices:
        own = [] if cost is None else [one for one in cost.segments if one.device == device]
        known = [one.microseconds for one in own if one.microseconds is not None]
        layers = facts.check.summary.layers_by_device[device]
        time = sum(known) if own and len(known) == len(own) else None
        yield device, layers, None if macs is None else macs.get(device, 0), time


def _device_table(facts: ReportFacts) -> Iterator[Block]:
    rows = [
        (device, layers, "-" if macs is None else f"{macs:,}", "-" if time is None else duration(time))
        for device, layers, macs, time in _rows(facts)
    ]
    yield Table("By device", ["device", "layers", "MACs", "estimated time"], rows)


def _changes(facts: ReportFacts) -> Iterator[Block]:
    edits = [] if facts.explained is None else facts.explained.edits[:MOST_CHANGES]
    if edits:
        rows = [(f"--apply {one.text}", one.title, change_text(one.before, one.cost)) for one in edits]
        yield Table("Most valuable changes of the model", ["option of dryfit explain", "change", "effect"], rows)


def _shares(facts: ReportFacts) -> Figure:
    devices, values = facts.devices, []
    for device, layers, macs, time in _rows(facts):
        values += [
            {"device": device, "of": of, "value": value}
            for of, value in (("layers", layers), ("MACs", macs), ("estimated time", time))
            if value is not None
        ]
    said = "; ".join(
        f"{device}: {count_text(layers, 'layer')}" + ("" if macs is None else f", {macs:,} MACs")
        for device, layers, macs, _ in _rows(facts)
    )
    specification = {
        "width": WIDTH,
        "height": 90,
        "data": {"values": values},
        "mark": "bar",
        "encoding": {
            "y": {"field": "of", "type": "nominal", "title": None, "sort": ["layers", "MACs", "estimated time"]},
            "x": {
                "field": "value",
                "stack": "normalize",
                "title": None,
                "type": "quantitative",
                "axis": {"format": "%"},
            },
            "color": Legend("device", {one: device_color(one, devices) for one in devices}).encoding,
        },
    }
    return chart("shares", "Shares of the devices", said, specification)
