"""INT8: ranges and what they lose, layers by their error, precisions with their reasons, and the ranges of weights."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from dryfit.answers.comparison.answer import CompareAnswer
from dryfit.answers.comparison.compare import ComparedTensor
from dryfit.answers.comparison.sides import DEFINITION
from dryfit.answers.explain_quantization import QuantizationAnswer
from dryfit.answers.quantization_text import summary_text
from dryfit.answers.text import Block, Entries, Line, Table, table_name, type_text
from dryfit.builder.precision.chosen import PrecisionCause
from dryfit.reporting.facts import ReportFacts
from dryfit.reporting.figures import Figure, Part, chart
from dryfit.reporting.numerics import Numerics, TensorRange, WeightRange
from dryfit.short_text import count_text, printable, short_name, sparkline

PICTURED = 6
"""Tensors whose histograms are pictures: those that lose most. All are in the table. Our choice."""
LISTED = 12
"""Rows of a table above the details. Our choice."""
CAUSES = {
    PrecisionCause.INT8: "has scales, and INT8 pays",
    PrecisionCause.EXPLICIT: "decided by Q/DQ",
    PrecisionCause.STRONGLY_TYPED: "types of the strongly typed network",
    PrecisionCause.FLAGS: "nothing narrower is allowed by --precision",
    PrecisionCause.NO_ARITHMETIC: "no floating-point arithmetic",
    PrecisionCause.NO_SCALES: "tensors without a scale",
    PrecisionCause.CONSTRAINT: "set for the layer",
    PrecisionCause.KIND: "INT8 is not supported for this kind of layer",
    PrecisionCause.DEVICE: "INT8 is not supported by the device",
    PrecisionCause.PROMOTED: "the device computes it in a wider type",
    PrecisionCause.NOISE_REDUCTION: "kept near a network output, to reduce noise",
    PrecisionCause.DOES_NOT_PAY: "conversions would move more bytes than INT8 saves",
}
"""Causes of a precision in words."""
PLOT = 265
"""Pixels of the plotting area of a small picture."""


def part(facts: ReportFacts) -> Part | None:
    """The part about INT8; None if no layer may be computed in it and no samples were given."""
    found = facts.numerics
    if found.quantization is None and found.calibration is None:
        return None
    ranges = by_loss(found.tensors)
    return Part(
        name="int8",
        title="INT8",
        finding=_finding(found),
        figures=[
            *(_histogram(one, rank) for rank, one in enumerate(ranges[:PICTURED])),
            *_ratios(found.comparison, found.definition_text),
            *_channels(found.weights),
        ],
        blocks=list(_blocks(found, ranges)),
        details=list(_details(found)),
        basis=_basis(found),
        numbers={"spread": {one.layer: one.spread for one in found.weights}},
    )


def by_loss(tensors: Sequence[TensorRange]) -> list[TensorRange]:
    """Return the tensors with a known ratio, those that lose most first, then those that are unknown."""
    return sorted(tensors, key=lambda one: math.inf if one.sqnr_db is None else one.sqnr_db)


def _finding(found: Numerics) -> str:
    said = []
    if found.quantization is not None:
        summary = found.quantization.summary
        int8 = summary.layers_by_precision.get("INT8", 0)
        said.append(f"{int8} of {count_text(summary.layers, 'layer')} are computed in INT8")
        missing = summary.tensors_by_origin.get("missing", 0)
        if missing and found.assumes_scales:
            said.append(f"scales of {count_text(missing, 'tensor')} are assumed")
        elif missing:
            said.append(f"{count_text(missing, 'tensor')} {'has' if missing == 1 else 'have'} no scale")
    outputs = [] if found.comparison is None else [one for one in found.comparison.tensors if one.is_output]
    for one in outputs[:2]:
        difference = one.differences.get(DEFINITION)
        ratio = "not known" if difference is None else with_unit(difference.ratio_text)
        said.append(f"SQNR of {short_name(one.tensor)!r} against {found.definition_text} is {ratio}")
    if found.comparison is None and found.tensors:
        worst = by_loss(found.tensors)[0]
        if worst.sqnr_db is not None:
            said.append(f"the range of {short_name(worst.tensor)} loses most (SQNR {worst.sqnr_db:.1f} dB)")
    return f"{'; '.join(said) or 'Nothing is known about INT8'}."


def with_unit(text: str) -> str:
    """Return a ratio with its unit; words such as `equal` have none."""
    return f"{text} dB" if text.replace(".", "").lstrip("-").isdigit() else text


def _basis(found: Numerics) -> str:
    said = []
    if found.calibration is not None:
        one = found.calibration
        said.append(
            f"Ranges: {one.calibrator} on {count_text(one.samples, 'sample')}, run in FP32 on this machine. "
            "The SQNR of a range is estimated from its histogram."
        )
    if found.comparison is not None:
        said.append(f"SQNR of layers: simulated on this machine with {found.inputs}.")
        if found.comparison.simulated:
            said.append(f"Simulated: {found.comparison.simulated}.")
    if found.assumes_scales:
        said.append("Every tensor is assumed to have a scale; calibrate to know which layers INT8 suits.")
    if found.calibration is None:
        reason = "No samples were given" if found.lint is None else "The scales are those of the model's Q/DQ"
        said.append(f"{reason}: there are no histograms.")
    return " ".join(said)


# Histograms -----------------------------------------------------------------------------------------------------------


def _histogram(one: TensorRange, rank: int) -> Figure:
    """Magnitudes of a tensor with its range, above the ratio that each range would have."""
    end = max(one.largest, one.threshold or 0.0)
    bars = [
        {"from": place * one.bin_width, "to": min((place + 1) * one.bin_width, end), "values": count, "none": 0}
        for place, count in enumerate(one.counts)
        if count
    ]
    axis = {"type": "quantitative", "scale": {"domain": [0, end], "nice": False}}
    chosen = [] if one.threshold is None else [{"threshold": one.threshold, "sqnr": one.sqnr_db}]
    rule = {
        "data": {"values": chosen},
        "mark": {"type": "rule", "color": "var(--warning)", "strokeWidth": 2},
        "encoding": {"x": {"field": "threshold", **axis}},
    }
    counts = {
        "data": {"values": bars},
        "mark": {"type": "bar", "color": "var(--device-3)"},
        "encoding": {
            "x": {"field": "from", **axis, "title": None, "axis": {"labels": False, "tickCount": 5}},
            "x2": {"field": "to"},
            "y": {
                "field": "values",
                "type": "quantitative",
                "scale": {"type": "symlog"},
                "title": "values but 0",
                "axis": {"values": _powers(max(one.counts, default=0)), "labelExpr": "format(datum.value, '~s')"},
            },
            "y2": {"field": "none"},
        },
    }
    curve = {
        "data": {"values": [{"t": t, "db": db} for t, db in zip(one.thresholds, one.losses_db, strict=True)]},
        "mark": {"type": "line", "color": "var(--device-3)"},
        "encoding": {
            "x": {"field": "t", **axis, "title": "threshold", "axis": {"tickCount": 5}},
            "y": {"field": "db", "type": "quantitative", "title": "SQNR dB", "axis": {"tickCount": 4}},
        },
    }
    point = {
        "data": {"values": [one for one in chosen if one["sqnr"] is not None]},
        "mark": {"type": "point", "color": "var(--warning)", "size": 60},
        "encoding": {"x": {"field": "threshold", **axis}, "y": {"field": "sqnr", "type": "quantitative"}},
    }
    specification = {
        "vconcat": [
            {"width": PLOT, "height": 90, "layer": [counts, rule]},
            {"width": PLOT, "height": 90, "layer": [curve, rule, point]},
        ],
        "spacing": 8,
    }
    name = table_name(one.tensor)
    chosen_text = (
        f"no range: {one.origin}"
        if one.threshold is None
        else f"range up to {one.threshold:.6g}, SQNR {_number(one.sqnr_db)} dB, "
        f"{_percent(one.saturated)} of the values other than zero beyond it"
    )
    best = (
        "" if one.best_threshold is None else f"; best SQNR {_number(one.best_sqnr_db)} dB at {one.best_threshold:.6g}"
    )
    said = f"{name}: {one.values:,} values up to {one.largest:.6g}; {chosen_text}{best}"
    found = chart(f"range-{rank + 1}", printable(f"{name}: {_caption(one)}", kept=""), said, specification)
    return attrs.evolve(found, is_small=True)


def _caption(one: TensorRange) -> str:
    if one.threshold is None:
        return "no range"
    return f"threshold {one.threshold:.4g} of {one.largest:.4g}, SQNR {_number(one.sqnr_db)} dB"


def _powers(largest: int) -> list[int]:
    """Ticks of a logarithmic axis that begins at 0."""
    powers = [10**power for power in range(len(str(largest)))]
    return [0, *powers[:: max(1, math.ceil(len(powers) / 4))]]


def _number(value: float | None) -> str:
    return "not known" if value is None else f"{value:.1f}"


def _percent(share: float | None) -> str:
    if share is None:
        return "not known"
    return "<0.01 %" if 0 < share < 1e-4 else f"{share:.2%}".replace("%", " %")


# Layers ---------------------------------------------------------------------------------------------------------------


def ratio_values(compared: Sequence[ComparedTensor], side: str) -> list[dict[str, Any]]:
    """Return place, name and ratio of each tensor whose ratio against a side is known."""
    return [
        {"place": place, "tensor": one.tensor, "dB": found.sqnr_db, "side": side}
        for place, one in enumerate(compared)
        if (found := one.differences.get(side)) is not None and found.sqnr_db is not None
    ]


def place_axis(count: int) -> dict[str, Any]:
    """Return the axis along a network with this many layers."""
    return {
        "field": "place",
        "type": "quantitative",
        "title": "layer, in order of execution",
        "scale": {"domain": [0, max(count - 1, 1)], "nice": False},
        "axis": {"tickCount": 5, "tickMinStep": 1},
    }


def _ratios(comparison: CompareAnswer | None, definition: str) -> Iterator[Figure]:
    """The signal-to-noise ratio along the network, and what the layers themselves add."""
    if comparison is None or all(one.name != DEFINITION for one in comparison.sides):
        return
    compared = [one for one in comparison.tensors if not one.is_conversion]
    total = ratio_values(compared, DEFINITION)
    own = [
        {"place": place, "dB": found.own_sqnr_db, "of": "added by the layer itself"}
        for place, one in enumerate(compared)
        if (found := one.differences[DEFINITION]) is not None and found.own_sqnr_db is not None
    ]
    if not total:
        return
    values = [{**one, "of": "result"} for one in total]
    color = {
        "field": "of",
        "type": "nominal",
        "title": None,
        "scale": {
            "domain": ["result", "added by the layer itself"],
            "range": ["var(--device-3)", "var(--warning)"],
        },
        "legend": {"orient": "top"},
    }
    decibels = {"field": "dB", "type": "quantitative", "title": "SQNR dB"}
    specification = {
        "width": PLOT,
        "height": 190,
        "encoding": {"x": place_axis(len(compared)), "y": decibels, "color": color},
        "layer": [
            {"data": {"values": values}, "mark": {"type": "line"}},
            {"data": {"values": own}, "mark": {"type": "point", "size": 14}},
        ],
    }
    worst = min(total, key=lambda one: one["dB"])
    last = total[-1]
    said = (
        f"{count_text(len(total), 'tensor')}: lowest SQNR {worst['dB']:.1f} dB at {table_name(worst['tensor'])}, "
        f"last {last['dB']:.1f} dB at {table_name(last['tensor'])}"
    )
    figure = chart("sqnr", f"SQNR of layers against {definition}", printable(said, kept=""), specification)
    yield attrs.evolve(figure, is_small=True)


def _channels(weights: Sequence[WeightRange]) -> Iterator[Figure]:
    """From the narrowest to the widest channel of the layers where these differ most."""
    several = [one for one in weights if len(one.magnitudes) > 1 and one.smallest]
    shown = sorted(several, key=lambda one: -one.spread)[:LISTED]
    if not shown:
        return
    values = [
        {
            "layer": f"{rank + 1} {_tail(printable(one.layer, kept=''))}",
            "low": one.smallest,
            "high": one.largest,
        }
        for rank, one in enumerate(shown)
    ]
    points = [
        {"layer": row["layer"], "channel": magnitude}
        for row, one in zip(values, shown, strict=True)
        for magnitude in _thinned(one.magnitudes)
    ]
    layer = {"field": "layer", "type": "nominal", "sort": None, "title": None, "axis": {"labelLimit": 125}}
    axis = {"type": "quantitative", "scale": {"type": "log"}, "title": "largest weight of a channel"}
    specification = {
        "width": PLOT - 95,
        "height": {"step": 17},
        "layer": [
            {
                "data": {"values": values},
                "mark": {"type": "bar", "color": "var(--line)", "height": 9},
                "encoding": {
                    "y": layer,
                    "x": {"field": "low", **axis, "axis": {"tickCount": 4, "format": "~g"}},
                    "x2": {"field": "high"},
                },
            },
            {
                "data": {"values": points},
                "mark": {"type": "tick", "color": "var(--device-3)", "height": 9, "thickness": 1},
                "encoding": {"y": layer, "x": {"field": "channel", **axis}},
            },
        ],
    }
    said = "; ".join(
        f"{table_name(one.layer)}: {len(one.magnitudes)} channels, {one.smallest:.3g} to {one.largest:.3g}"
        for one in shown
    )
    found = chart(
        "channels", "Ranges of weights by channel, largest spread first", printable(said, kept=""), specification
    )
    yield attrs.evolve(found, is_small=True)


_LABEL = 18


def _tail(name: str) -> str:
    """The end of a name: those of neighbors begin alike."""
    return name if len(name) <= _LABEL else f"...{name[3 - _LABEL :]}"


MOST_TICKS = 64
"""Channels of a layer that are drawn: more cannot be told apart."""


def _thinned(magnitudes: Sequence[float]) -> list[float]:
    """Magnitudes other than zero, of many an even choice that has the smallest and the largest."""
    ordered = sorted(filter(None, magnitudes))
    last = len(ordered) - 1
    if last < MOST_TICKS:
        return ordered
    return [ordered[round(place * last / (MOST_TICKS - 1))] for place in range(MOST_TICKS)]


# Tables ---------------------------------------------------------------------------------------------------------------

_RANGES = ["tensor", "histogram", "largest", "threshold", "saturated", "SQNR dB", "best dB", "at", "origin"]
_ERRORS = ["tensor", "layer", "type", "SQNR dB", "added", "inherited"]
_WEIGHTS = ["layer", "kind", "channels", "narrowest", "widest", "spread", "from"]


def _blocks(found: Numerics, ranges: Sequence[TensorRange]) -> Iterator[Block]:
    yield Entries("Not answered", [(*_split(problem), "") for problem in found.problems])
    if found.quantization is not None:
        yield Line(summary_text(found.quantization.summary))
        yield _reasons(found.quantization)
    errors = list(_errors(found.comparison))
    if errors:
        yield Table(
            f"Layers that add most error against {found.definition_text}{_of(errors)}", _ERRORS, errors[:LISTED]
        )
    if ranges:
        yield Table(f"Ranges, largest loss first{_of(ranges)}", _RANGES, [_range_row(one) for one in ranges[:LISTED]])
    weights = sorted(found.weights, key=lambda one: -one.spread)
    if weights:
        rows = [_weight_row(one) for one in weights[:LISTED]]
        yield Table(f"Ranges of weights by channel, largest spread first{_of(weights)}", _WEIGHTS, rows)


def _of(rows: Sequence[object]) -> str:
    return f" ({LISTED} of {len(rows)}; all in the details)" if len(rows) > LISTED else ""


def _split(problem: str) -> tuple[str, str]:
    name, _, text = problem.partition(": ")
    return name, text


def _details(found: Numerics) -> Iterator[Block]:
    if found.quantization is not None:
        rows = [
            (one.name, one.kind, one.device or "none", type_text(one.precision), one.reason)
            for one in found.quantization.layers
        ]
        yield Table("Precision of each layer", ["layer", "kind", "device", "precision", "because"], rows)
        conflicts = [(one.tensor, str(one), "") for one in found.quantization.conflicts]
        yield Entries("Contradicting ranges", conflicts)
        if not found.tensors and found.quantization.tensors:
            scales = [
                (one.tensor, "none" if one.scale is None else f"{one.scale:.7g}", one.words)
                for one in found.quantization.tensors
            ]
            yield Table("Scales", ["tensor", "scale", "origin"], scales)
    errors = list(_errors(found.comparison))
    if len(errors) > LISTED:
        yield Table(f"Error of each layer against {found.definition_text}, largest first", _ERRORS, errors)
    if len(found.tensors) > LISTED:
        yield Table("Range of each tensor, in order of execution", _RANGES, [_range_row(one) for one in found.tensors])
    if len(found.weights) > LISTED:
        yield Table("Weights of each layer", _WEIGHTS, [_weight_row(one) for one in found.weights])


def _reasons(answer: QuantizationAnswer) -> Table:
    """Precisions with their causes, and how many layers each has."""
    counted: dict[tuple[str, str], list[str]] = {}
    for one in answer.layers:
        cause = "unplaced, or computes a shape" if one.cause is None else CAUSES[one.cause]
        counted.setdefault((one.precision, cause), []).append(one.name)
    rows = [
        (type_text(precision), cause, len(names), f"{table_name(names[0])}{' ...' if len(names) > 1 else ''}")
        for (precision, cause), names in sorted(counted.items(), key=lambda entry: -len(entry[1]))
    ]
    return Table("Precisions and their causes", ["precision", "cause", "layers", "such as"], rows)


def _errors(comparison: CompareAnswer | None) -> Iterator[tuple[object, ...]]:
    """Tensors whose own layer adds an error, largest first; then those of which that is not known."""
    if comparison is None:
        return
    known = [
        (one, found)
        for one in comparison.tensors
        if not one.is_conversion and (found := one.differences.get(DEFINITION)) is not None
    ]
    for one, found in sorted(known, key=lambda pair: (pair[1].own_sqnr_db is None, pair[1].own_sqnr_db or 0.0)):
        yield (
            table_name(one.tensor),
            table_name(one.engine_layer),
            one.dtype.text,
            found.ratio_text,
            found.own_text,
            found.inherited_text,
        )


def _range_row(one: TensorRange) -> tuple[object, ...]:
    return (
        table_name(one.tensor),
        sparkline(one.counts),
        f"{one.largest:.6g}",
        "none" if one.threshold is None else f"{one.threshold:.6g}",
        _percent(one.saturated),
        _number(one.sqnr_db),
        _number(one.best_sqnr_db),
        "-" if one.best_threshold is None else f"{one.best_threshold:.6g}",
        one.origin,
    )


def _weight_row(one: WeightRange) -> tuple[object, ...]:
    return (
        table_name(one.layer),
        one.kind,
        len(one.magnitudes),
        f"{one.smallest:.6g}",
        f"{one.largest:.6g}",
        f"{one.spread:.1f}",
        "scales of Q/DQ" if one.is_stated else "weights",
    )
