"""The arithmetic that each device uses for the layers of a placement or an engine, and how well it is verified."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dryfit.answers.json_data import Count
from dryfit.answers.placement import LayerAnswer, placement_of
from dryfit.answers.text import Block, Entries, Table, type_text
from dryfit.attrs_classes import frozen
from dryfit.engine.plan import Operation, Plan
from dryfit.engine.resolved_operation import version_numbers
from dryfit.network.data_types import DataType
from dryfit.plugins import registry
from dryfit.target.arithmetic import Approximation
from dryfit.target.target import Target


@frozen
class ApproximatedLayers:
    """Layers that a device computes with an approximation of its own.

    Attributes:
        kernel: kernel of the target that computes the layers.
        text: what the kernel computes instead of the exact function, in one sentence.
        layers: names of the layers.
        fidelity: `documented`, `inferred` or `confirmed`.
        source: document and section, or "our choice, because ...".
    """

    kernel: str
    text: str
    layers: Sequence[str]
    fidelity: str
    source: str


@frozen
class LayerArithmetic:
    """The arithmetic that a device uses for layers of one computation type.

    Attributes:
        device: name of the device.
        software: software version of the device; empty for a device without versions.
        precision: the computation type.
        layers: number of layers that are computed in this type.
        accumulator: data type of the accumulator.
        rounds: when results are rounded: after each group of layers or after each layer.
        rounding: rounding mode of the results: `half_to_even`, `half_away_from_zero`, `half_up`, or the name of the
            device's own function.
        weight_rounding: rounding mode for weights that the builder quantizes; same values as `rounding`.
        fidelity: `documented`, `inferred` or `confirmed`.
        source: document and section, or "our choice, because ...".
        approximations: layers that the device computes with an approximation of its own.
    """

    device: str
    software: str
    precision: str
    layers: Count
    accumulator: str
    rounds: str
    rounding: str
    weight_rounding: str
    fidelity: str
    source: str
    approximations: Sequence[ApproximatedLayers]


def arithmetic_of(
    layers: Sequence[LayerAnswer], settings: Mapping[str, Any], operations: Sequence[Operation] | None = None
) -> list[LayerArithmetic]:
    """Return one entry per device and computation type of the layers, in order of first occurrence.

    Quantized operators are not included: their quantize method defines their arithmetic, not the device.

    Args:
        layers: layers of a placement.
        settings: config settings, which include the software versions.
        operations: operations of an engine, used to list only the layers that are approximated. If omitted, every layer
            of a kind that may be approximated is listed.
    """
    places: dict[tuple[str, str], list[LayerAnswer]] = {}
    for layer in layers:
        if layer.device is not None and layer.segment is not None and layer.kind != "quantized_operator":
            places.setdefault((layer.device, layer.precision), []).append(layer)
    found = (_entry(*place, members, settings, operations) for place, members in places.items())
    return [one for one in found if one is not None]


def plan_arithmetic(plan: Plan) -> list[LayerArithmetic]:
    """Return the arithmetic of an engine's layers."""
    layers = placement_of(plan.network.name, plan, plan.settings).layers
    return arithmetic_of(layers, plan.settings, plan.operations)


def _entry(
    device: str,
    precision: str,
    layers: Sequence[LayerAnswer],
    settings: Mapping[str, Any],
    operations: Sequence[Operation] | None,
) -> LayerArithmetic | None:
    """Return the arithmetic of a computation type; None if the device declares none or is not installed."""
    target = registry.find_target(device)
    record = None if target is None else target.arithmetic.get(DataType[precision])
    if target is None or record is None:
        return None
    text = str(settings["software"].get(device, ""))
    software = version_numbers(text, device)
    approximated = [(one, _approximated(one, target, layers, operations)) for one in record.approximations]
    return LayerArithmetic(
        device=device,
        software=text,
        precision=precision,
        layers=len(layers),
        accumulator=record.accumulator.name,
        rounds=record.rounds,
        rounding=record.rounding_for(software).value,
        weight_rounding=record.weight_rounding_for(software).value,
        fidelity=record.fidelity,
        source=record.source,
        approximations=[
            ApproximatedLayers(one.kernel, one.text, names, one.fidelity, one.source)
            for one, names in approximated
            if names
        ],
    )


def _approximated(
    one: Approximation, target: Target, layers: Sequence[LayerAnswer], operations: Sequence[Operation] | None
) -> list[str]:
    """Return the layers that an approximation applies to: those of an engine if given, else all of its kinds."""
    if operations is not None:
        return [name for step in operations if step.kernel == one.kernel for name in step.source_layers]
    kinds = {kind for kernel in target.kernels if kernel.name == one.kernel for kind in kernel.kinds}
    return [layer.name for layer in layers if layer.kind in kinds]


def arithmetic_blocks(entries: Sequence[LayerArithmetic], title: str = "Arithmetic") -> Iterator[Block]:
    """Return the arithmetic as a table, followed by the approximations with their sources."""
    rows = [
        (
            f"{one.device} {one.software}".strip(),
            type_text(one.precision),
            one.layers,
            type_text(one.accumulator),
            f"{one.rounding}, once per {one.rounds}",
            one.weight_rounding,
            one.fidelity,
        )
        for one in entries
    ]
    columns = ["device", "precision", "layers", "accumulator", "results rounded", "weights rounded", "fidelity"]
    if rows:
        yield Table(title, columns, rows)
    approximations = [
        (", ".join(one.layers) or one.kernel, f"{one.text} ({one.fidelity})", f"Source: {one.source}.")
        for entry in entries
        for one in entry.approximations
    ]
    yield Entries("Approximations", approximations)
