"""Arithmetic: where the device's numbers part from those of other devices and versions, and by how much."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import attrs

from dryfit.answers.arithmetic import arithmetic_blocks
from dryfit.answers.comparison.answer import CompareAnswer, ComparedSide
from dryfit.answers.comparison.overflows import overflow_blocks
from dryfit.answers.comparison.sides import DEFINITION
from dryfit.answers.text import Block, Entries, Line, Table, device_text, table_name
from dryfit.reporting.facts import ReportFacts
from dryfit.reporting.figures import COLORS, Figure, Part, chart
from dryfit.reporting.numerics import Numerics
from dryfit.reporting.parts.quantization import PLOT, place_axis, ratio_values, with_unit
from dryfit.short_text import count_text, printable


def part(facts: ReportFacts) -> Part | None:
    """The part about arithmetic; None if nothing was compared."""
    numerics = facts.numerics
    found = numerics.comparison
    if found is None:
        return None
    simulated = f" Simulated: {found.simulated}." if found.simulated else ""
    own = list(_blocks(found, numerics.definition_text))
    return Part(
        name="arithmetic",
        title="Arithmetic of devices and versions",
        finding=" ".join(
            [_finding(found, numerics.definition_text), *_versions_text(numerics), *_methods_text(numerics)]
        ),
        figures=list(_figures(found, facts.numerics.definition_text)),
        blocks=[*own, *_other_blocks(numerics)],
        details=list(_details(found)),
        basis=f"Computed on this machine with {facts.numerics.inputs}.{simulated}",
    )


def _finding(found: CompareAnswer, definition: str) -> str:
    said = []
    for side in found.sides:
        first = ""
        if side.first_error is not None:
            one = found.tensor(side.first_error)
            difference = one.differences[side.name]
            ratio = "" if difference is None else f" (SQNR {with_unit(difference.ratio_text)})"
            first = f", first at {table_name(one.tensor)}{ratio}"
        differing = f"{side.differing} of {count_text(side.compared, 'tensor')}"
        said.append(f"{differing} differ from {_title(side.name, definition)}{first}")
    return f"{'; '.join(said)}."


def _versions_text(numerics: Numerics) -> Iterator[str]:
    """Whether versions of TensorRT diverge, where first, and by how much."""
    found = numerics.versions
    if found is None:
        return
    built = [one.api for one in found.versions if one.can_be_built]
    differing = [one for one in found.layers if one.differs]
    if len(built) < 2:
        apis = _listed([one.api for one in found.versions])
        yield f"Of TensorRT {apis}, {f'only {built[0]}' if built else 'none'} builds the model."
        return
    parting = [
        f"{api} by up to {difference:.3g} at {table_name(one.tensor)!r}"
        for one in found.outputs
        for api, difference in one.largest_differences.items()
        if difference
    ]
    where = f", first in the placement or precision of {table_name(differing[0].layer)}" if differing else ""
    if parting:
        yield f"Outputs of TensorRT {found.reference} differ from {'; '.join(parting)}{where}."
    else:
        yield f"TensorRT {_listed(built)} give the same outputs."


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words[:-1]) + f" and {words[-1]}" if len(words) > 1 else words[0]


def _methods_text(numerics: Numerics) -> Iterator[str]:
    """Whether the codes of devices differ from those of the first method, where first, and by how much."""
    found = numerics.methods
    if found is None:
        return
    first, *others = found.methods
    said = []
    for one in others:
        if one.first_parting is None:
            continue
        layer = next(each for each in found.layers if each.tensor == one.first_parting)
        difference = layer.differences[one.name]
        if difference is not None:
            said.append(
                f"{one.name} from {table_name(layer.layer)} on, by up to {count_text(difference.largest, 'code')}"
            )
    yield (
        f"Codes differ from those of {first.name}: {'; '.join(said)}."
        if said
        else (f"Codes of {_listed([one.name for one in others])} equal those of {first.name}.")
    )


def _other_blocks(numerics: Numerics) -> Iterator[Block]:
    """The tables about versions and quantize methods; their headings are said once for the whole page."""
    for one in (numerics.versions, numerics.methods):
        if one is not None:
            yield from itertools.dropwhile(lambda block: isinstance(block, Line), one.blocks())


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
