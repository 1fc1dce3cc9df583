"""Arithmetic: where the device's numbers part from those of other devices and versions, and by how much."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from dryfit.answers.arithmetic import arithmetic_blocks
from dryfit.answers.comparison.answer import CompareAnswer, ComparedSide
from dryfit.answers.comparison.overflows import overflow_blocks
from dryfit.answers.comparison.sides import DEFINITION
from dryfit.answers.text import Block, Entries, Line, Table, device_text, table_name
from dryfit.reporting.facts import ReportFacts
from dryfit.reporting.figures import COLORS, Figure, Part, chart
from dryfit.reporting.parts.quantization import PLOT, place_axis, ratio_values, with_unit
from dryfit.short_text import count_text, printable


def part(facts: ReportFacts) -> Part | None:
    """The part about arithmetic; None if nothing was compared."""
    found = facts.numerics.comparison
    if found is None:
        return None
    simulated = f" Simulated: {found.simulated}." if found.simulated else ""
    return Part(
        name="arithmetic",
        title="Arithmetic of devices and versions",
        finding=_finding(found, facts.numerics.definition_text),
        figures=list(_figures(found, facts.numerics.definition_text)),
        blocks=list(_blocks(found, facts.numerics.definition_text)),
        details=list(_details(found)),
        basis=f"Computed on this machine with {facts.numerics.inputs}.{simulated}",
    )


def _finding(found: CompareAnswer, definition: str) -> str:
    said = []
    for side in found.sides:
        first = "" if side.first_error is None else f", first at {table_name(found.tensor(side.first_error).tensor)}"
        differing = f"{side.differing} of {count_text(side.compared, 'tensor')}"
        said.append(f"{differing} differ from {_title(side.name, definition)}{first}")
    return f"{'; '.join(said)}."


def _title(side: str, definition: str) -> str:
    return definition if side == DEFINITION else side


def _figures(found: CompareAnswer, definition: str) -> Iterator[Figure]:
    """The ratio against each side along the network; equal tensors have none."""
    values = [one for side in found.sides for one in ratio_values(found.tensors, side.name)]
    if not values:
        return
    titles = {side.name: _title(side.name, definition) for side in found.sides}
    values = [{**one, "side": titles[one["side"]]} for one in values]
    names = list(titles.values())
    colors = [f"var(--device-{place % COLORS})" for place in range(len(names))]
    specification = {
        "width": PLOT,
        "height": 190,
        "data": {"values": values},
        "mark": {"type": "line", "point": {"size": 12}},
        "encoding": {
            "x": place_axis(len(found.tensors)),
            "y": {"field": "dB", "type": "quantitative", "title": "SQNR dB"},
            "color": {
                "field": "side",
                "type": "nominal",
                "title": "against",
                "scale": {"domain": names, "range": colors},
                "legend": {"orient": "top"},
            },
        },
    }
    said = "; ".join(
        f"{titles[side.name]}: lowest {min(ratios):.1f} dB over {count_text(len(ratios), 'tensor')} that differ"
        for side in found.sides
        if (ratios := [one["dB"] for one in values if one["side"] == titles[side.name]])
    )
    figure = chart("sides", "SQNR of layers against each side", printable(said, kept=""), specification)
    yield attrs.evolve(figure, is_small=True)


def _blocks(found: CompareAnswer, definition: str) -> Iterator[Block]:
    where = device_text(found.device, found.platform, found.software)
    precisions = ", ".join(one.upper() for one in found.precisions) or "FP32"
    yield Line(f"Compared: {where}, {precisions}, {count_text(len(found.samples), 'sample')}")
    rows = [_side_row(found, side, definition) for side in found.sides]
    columns = ["against", "compared", "differ", "first layer that adds an error", "its SQNR", "most error added by"]
    yield Table("Sides", columns, rows)
    outputs = [
        (
            one.tensor,
            _title(side.name, definition),
            "not stored there" if difference is None else difference.ratio_text,
            "-" if difference is None else f"{difference.differing} of {difference.elements}",
            "-" if difference is None or difference.largest is None else str(difference.largest),
        )
        for one in found.tensors
        if one.is_output
        for side in found.sides
        for difference in (one.differences[side.name],)
    ]
    yield Table("Outputs", ["output", "against", "SQNR dB", "elements that differ", "largest difference"], outputs)
    for side in found.sides:
        yield from overflow_blocks(side.overflows, side.name)
    unknown = [(one.layer, one.reason, "") for one in found.weights_unknown]
    yield Entries("Not compared, because the engine does not expose the weights of", unknown)
    if found.left_out:
        yield Line(
            f"Not compared, because they match no tensor of the model: {', '.join(map(table_name, found.left_out))}"
        )


def _side_row(found: CompareAnswer, side: ComparedSide, definition: str) -> tuple[object, ...]:
    first = None if side.first_error is None else found.tensor(side.first_error)
    difference = None if first is None else first.differences[side.name]
    worst = [table_name(found.tensor(name).engine_layer) for name in side.largest_errors[:3]]
    return (
        _title(side.name, definition),
        side.compared,
        side.differing,
        "none" if first is None else table_name(first.engine_layer),
        "-" if difference is None else with_unit(difference.own_text),
        ", ".join(worst) or "none",
    )


def _details(found: CompareAnswer) -> Iterator[Block]:
    yield from arithmetic_blocks(found.arithmetic)
    for side in found.sides:
        if side.arithmetic:
            yield from arithmetic_blocks(side.arithmetic, f"Arithmetic of {side.name}")
    names = [side.name for side in found.sides]
    rows = [
        (
            table_name(one.tensor),
            table_name(one.engine_layer),
            one.device,
            one.dtype.text,
            *("not stored" if (there := one.differences[name]) is None else there.ratio_text for name in names),
        )
        for one in found.tensors
    ]
    columns = ["tensor", "layer", "device", "type", *(f"SQNR dB against {name}" for name in names)]
    yield Table("Each tensor", columns, rows)
