"""The matrix: the model on each board, version and set of precisions, and which layers change between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dryfit.answers.placement import LayerAnswer
from dryfit.answers.placement_text import listed_names
from dryfit.answers.text import Block, Entries, Line, Table, bytes_text, type_text
from dryfit.attrs_classes import frozen
from dryfit.estimate_text import rate_text
from dryfit.reporting.facts import ReportFacts, Variant
from dryfit.reporting.figures import Figure, Part, chart, label, percent, time_unit
from dryfit.short_text import count_text, with_short_names

PANEL = 150
"""Pixels of each of the panels of the picture."""


def part(facts: ReportFacts) -> Part | None:
    """The part about variants; None if there is one."""
    if len(facts.variants) < 2:
        return None
    return Part(
        name="matrix",
        title="Platforms, versions and precisions",
        finding=_finding(facts),
        figures=[_figure(facts)],
        blocks=[_table(facts), _errors(facts), *_changes(facts)],
        basis=f"Latencies are estimates; nothing was measured.{_assumption(facts)}",
        numbers=_numbers(facts),
    )


def _numbers(facts: ReportFacts) -> dict[str, Any]:
    """How many variants build, the share of the device in each, and how many layers change between which two."""
    return {
        "states": {state: sum(_state(one) == state for one in facts.variants) for state in STATES},
        "layers_share": {one.title: share_on_device(one) for one in facts.variants},
        "changed_layers": len(_changed(facts)),
        "changes": {
            other.title: [len(one.layers) for one in changes(facts.variants[0], other)] for _, other in _pairs(facts)
        },
    }


def _changed(facts: ReportFacts) -> set[str]:
    """Names of the layers that differ between the first variant and another one."""
    first = facts.variants[0]
    return {name for _, other in _pairs(facts) for group in changes(first, other) for name in group.layers}


def share_on_device(variant: Variant) -> float | None:
    """Return the share of layers on the requested device; None if the placement is unknown."""
    if variant.check is None or not variant.check.summary.layers:
        return None
    summary = variant.check.summary
    return summary.layers_by_device.get(variant.check.device, 0) / summary.layers


def latency(variant: Variant) -> float | None:
    """Return the estimated latency in microseconds; None if it is unknown."""
    return None if variant.estimate is None else variant.estimate.network.latency_microseconds


def _assumption(facts: ReportFacts) -> str:
    if not any(one.assumes_scales for one in facts.variants):
        return ""
    return " With INT8, every tensor is assumed to have a scale (--assume-scales), as no scales were given."


STATES = ["builds", "needs scales", "does not build"]


def _state(variant: Variant) -> str:
    return STATES[0] if variant.can_be_built else STATES[1] if variant.lacks_only_scales else STATES[2]


def _finding(facts: ReportFacts) -> str:
    variants = facts.variants
    builds, scaled = (sum(_state(one) == state for one in variants) for state in STATES[:2])
    text = f"The model builds for {builds} of {len(variants)} variants"
    text += f", and for {scaled} more with INT8 scales" if scaled else ""
    known = [(time, one) for one in variants if (time := latency(one)) is not None and one.estimate is not None]
    if len(known) > 1:
        best, worst = min(known, key=lambda one: one[0])[1], max(known, key=lambda one: one[0])[1]
        words = [one.estimate.network.latency_text for one in (best, worst) if one.estimate is not None]
        text += (
            f"; estimated latency {words[0]} for all"
            if words[0] == words[1]
            else f"; estimated latency from {words[0]} ({best.title}) to {words[1]} ({worst.title})"
        )
    changed = _changed(facts)
    which = (
        "no layer changes its"
        if not changed
        else f"{count_text(len(changed), 'layer')} change{'s' * (len(changed) == 1)}"
    )
    return f"{text}; {which} device, precision or verdict between them."


def _figure(facts: ReportFacts) -> Figure:
    times = [time for one in facts.variants if (time := latency(one)) is not None]
    unit, nanoseconds = time_unit(1000 * max(times, default=0.0))
    values: list[dict[str, Any]] = []
    for index, one in enumerate(facts.variants, 1):
        time, share = latency(one), share_on_device(one)
        values.append(
            {
                "variant": f"{index}. {one.title}",
                "share": 0.0 if share is None else share,
                "latency": 0.0 if time is None else 1000 * time / nanoseconds,
                "segments": 0 if one.check is None else one.check.summary.segments,
                "builds": _state(one),
                "unknown": "" if time is not None else "no estimate",
            }
        )
    y = {"field": "variant", "type": "nominal", "title": None, "sort": None}
    color = {
        "field": "builds",
        "type": "nominal",
        "title": None,
        "scale": {
            "domain": STATES,
            "range": ["var(--device-0)", "var(--device-3)", "var(--unplaced)"],
        },
        "legend": {"orient": "bottom"},
    }

    def panel(field: str, title: str, axis: Mapping[str, Any], **scale: Any) -> dict[str, Any]:
        shows_names = field == "share"
        own = {**y, "axis": {"labelLimit": 260} if shows_names else None}
        x = {"field": field, "type": "quantitative", "title": title, "axis": {"tickCount": 4, **axis}, **scale}
        bars = {"mark": "bar", "encoding": {"y": own, "x": x, "color": color}}
        layers: list[dict[str, Any]] = [bars]
        if field == "latency":
            words = {"type": "text", "align": "left", "dx": 4, "color": "var(--muted)"}
            text = {"field": "unknown", "type": "nominal"}
            layers.append({"mark": words, "encoding": {"y": own, "x": {**x, "title": title}, "text": text}})
        return {"width": PANEL, "height": {"step": 24}, "layer": layers}

    device = facts.check.device
    specification = {
        "data": {"values": values},
        "hconcat": [
            panel("share", f"layers on {device}", {"format": "%"}, scale={"domain": [0, 1]}),
            panel("latency", f"estimated latency in {unit}", {}),
            panel("segments", "segments", {"tickMinStep": 1, "format": "d"}),
        ],
        "spacing": 16,
    }
    said = "; ".join(" ".join(map(str, row)) for row in _rows(facts))
    return chart("variants", "Variants side by side", said, specification)


def _rows(facts: ReportFacts) -> Iterator[tuple[object, ...]]:
    for one in facts.variants:
        share, check, cost = share_on_device(one), one.check, one.estimate
        if check is None:
            yield one.title, "no", *["-"] * 6
            continue
        device = check.summary.layers_by_device.get(check.device, 0)
        best = "-"
        if cost is not None and cost.device in cost.devices:
            network = cost.network
            rate = network.throughput[-1].images_per_second
            best = rate_text(rate, network.busy_error_factor, is_upper_bound=cost.device in network.lower_bounds)
        yield (
            one.title,
            {"builds": "yes", "needs scales": "with INT8 scales"}.get(_state(one), "no"),
            "-" if share is None else f"{device} ({percent(share)})",
            check.summary.segments_by_device.get(check.device, 0),
            check.summary.segments,
            f"{check.summary.reformats} ({bytes_text(check.summary.reformat_bytes)})",
            "not estimated" if cost is None else cost.network.latency_text,
            best,
        )


def _table(facts: ReportFacts) -> Table:
    device = facts.check.device
    columns = ["variant", "builds", f"layers on {device}", f"segments on {device}", "segments", "copies"]
    columns += ["estimated latency", f"estimated throughput of {device}"]
    return Table("Variants", columns, list(_rows(facts)))


def _errors(facts: ReportFacts) -> Entries:
    found = []
    for one in facts.variants:
        refusals = [] if one.check is None or one.lacks_only_scales else one.check.refusals
        errors = [*map(with_short_names, refusals), *([one.error] if one.error and not refusals else [])]
        found += [(one.title, text.partition("\n")[0], "") for text in errors[:MOST_ERRORS]]
    return Entries("Why variants cannot be built or estimated", found)


MOST_ERRORS = 3
"""Errors that are listed of one variant."""


# Changes --------------------------------------------------------------------------------------------------------------


@frozen
class LayerChange:
    """Layers that differ in the same way between two variants.

    Attributes:
        device: change of the device, such as `DLA -> GPU`; "" for none.
        precision: change of the computation type; "" for none.
        rules: rules that only one of the two violates: `+` for those of the second, `-` for those of the first.
        layers: names of the layers.
    """

    device: str
    precision: str
    rules: Sequence[str]
    layers: Sequence[str]


def changes(first: Variant, second: Variant) -> list[LayerChange]:
    """Return the layers whose device, computation type or verdict differ, grouped, the largest group first.

    Verdicts are those of the requested device.
    """
    if first.check is None or second.check is None:
        return []
    device = second.check.device
    others = {one.name: one for one in second.check.layers}
    groups: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for one in first.check.layers:
        if (other := others.get(one.name)) is not None:
            before, after = _rules(one, first.check.device), _rules(other, device)
            rules = (*(f"+ {rule}" for rule in after if rule not in before),)
            rules += (*(f"- {rule}" for rule in before if rule not in after),)
            moved = "" if one.device == other.device else f"{one.device or 'unplaced'} -> {other.device or 'unplaced'}"
            types = (type_text(one.precision), type_text(other.precision))
            narrowed = "" if types[0] == types[1] else " -> ".join(types)
            if moved or narrowed or rules:
                groups.setdefault((moved, narrowed, rules), []).append(one.name)
    found = [LayerChange(*key, layers) for key, layers in groups.items()]
    return sorted(found, key=lambda one: (-len(one.layers), one.device, one.precision, one.rules))


def _rules(layer: LayerAnswer, device: str) -> list[str]:
    return list(dict.fromkeys(one.rule for one in layer.violations(device)))


def _pairs(facts: ReportFacts) -> Iterator[tuple[str, Variant]]:
    """The variants that differ from the first in one option, with the name of that option."""
    first = facts.variants[0]
    for other in facts.variants[1:]:
        options = ("platform", "software", "precision")
        differing = [one for one in options if getattr(first, one) != getattr(other, one)]
        if len(differing) == 1:
            yield differing[0], other


def _changes(facts: ReportFacts) -> Iterator[Block]:
    first = facts.variants[0]
    for option, other in _pairs(facts):
        if other.check is None:
            continue
        words = (f"{getattr(one, option) or getattr(one.check, option, '')}" for one in (first, other))
        title = f"What changes with the {option}: {' -> '.join(words)}"
        rows = [
            (
                len(one.layers),
                one.device or "same",
                one.precision or "same",
                ", ".join(one.rules) or "-",
                listed_names([label(name) for name in one.layers]),
            )
            for one in changes(first, other)
        ]
        if rows:
            yield Table(
                title, ["layers", "device", "precision", "rules violated (+) or not any more (-)", "which"], rows
            )
        else:
            yield Line(f"{title}: no layer changes its device, precision or verdict.")
