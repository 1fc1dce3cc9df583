"""In what arithmetic a network's layers are computed, and how sure that is, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dryfit.cli.console import print_list, print_table

if TYPE_CHECKING:
    from dryfit.engine.plan import Operation, Plan
    from dryfit.target.arithmetic import Approximation
    from dryfit.target.target import Target

Layers = Sequence[Mapping[str, Any]]
"""Layers of a `Placement`, as plain data."""


def arithmetic_report(
    layers: Layers, settings: Mapping[str, Any], operations: Sequence[Operation] | None = None
) -> list[dict[str, Any]]:
    """One entry for each device and computation type of the layers, in the order in which they first occur.

    Quantized operators are left out: their arithmetic is not the device's, and the rules of their methods tell it.

    Args:
        layers: with their devices and types.
        settings: those of the config; they have the software versions.
        operations: of an engine: they tell which layers are approximated. Without them all of a kind may be.
    """
    places: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for layer in layers:
        is_placed = layer["device"] is not None and layer["segment"] is not None
        if is_placed and layer["kind"] != "quantized_operator":
            places.setdefault((layer["device"], layer["precision"]), []).append(layer)
    found = (_entry(*place, members, settings, operations) for place, members in places.items())
    return [one for one in found if one is not None]


def plan_arithmetic(plan: Plan) -> list[dict[str, Any]]:
    """The report of an engine."""
    from dryfit.answers.json_data import plain
    from dryfit.answers.placement import placement_of

    layers = plain(placement_of(plan.network.name, plan, plan.settings))["layers"]
    return arithmetic_report(layers, plan.settings, plan.operations)


def _entry(
    device: str, precision: str, layers: Layers, settings: Mapping[str, Any], operations: Sequence[Operation] | None
) -> dict[str, Any] | None:
    """The arithmetic of one type; None where the device declares none, or its package is not installed."""
    from dryfit.engine.resolved_operation import version_numbers
    from dryfit.network.data_types import DataType
    from dryfit.plugins import registry

    target = registry.find_target(device)
    record = None if target is None else target.arithmetic.get(DataType[precision])
    if target is None or record is None:
        return None
    text = str(settings["software"].get(device, ""))
    software = version_numbers(text, device)
    approximated = ((one, _approximated(one, target, layers, operations)) for one in record.approximations)
    return {
        "device": device,
        "software": text,
        "precision": precision,
        "layers": len(layers),
        "accumulator": record.accumulator.name,
        "rounds": record.rounds,
        "rounding": record.rounding_for(software).value,
        "weight_rounding": record.weight_rounding_for(software).value,
        "fidelity": record.fidelity,
        "source": record.source,
        "approximations": [
            {"kernel": one.kernel, "text": one.text, "layers": names, "fidelity": one.fidelity, "source": one.source}
            for one, names in approximated
            if names
        ],
    }


def _approximated(
    one: Approximation, target: Target, layers: Layers, operations: Sequence[Operation] | None
) -> list[str]:
    """Names of the layers that an approximation is for: of an engine, those that it has; else those of its kinds."""
    if operations is not None:
        return [name for step in operations if step.kernel == one.kernel for name in step.source_layers]
    kinds = {kind for kernel in target.kernels if kernel.name == one.kernel for kind in kernel.kinds}
    return [layer["name"] for layer in layers if layer["kind"] in kinds]


def print_arithmetic(entries: Sequence[Mapping[str, Any]], title: str = "Arithmetic") -> None:
    """The table, and below it the approximations and the sources."""
    rows = [
        (
            f"{one['device']} {one['software']}".strip(),
            one["precision"],
            one["layers"],
            one["accumulator"],
            f"{one['rounding']}, once a {one['rounds']}",
            one["weight_rounding"],
            one["fidelity"],
        )
        for one in entries
    ]
    columns = ["device", "precision", "layers", "sums in", "results rounded", "weights rounded", "fidelity"]
    if rows:
        print_table(title, columns, rows)
    print_list(
        "Approximations",
        [
            (
                ", ".join(one["layers"]) or one["kernel"],
                f"{one['text']} ({one['fidelity']})",
                f"Source: {one['source']}.",
            )
            for entry in entries
            for one in entry["approximations"]
        ],
    )


_TEXT: dict[str, Any] = {"type": "string"}
_ROUNDING: dict[str, Any] = {
    **_TEXT,
    "description": "`half_to_even`, `half_away_from_zero`, `half_up`, or the name of the device's own function.",
}
_FIDELITY: dict[str, Any] = {"enum": ["documented", "inferred", "confirmed"]}


def _list(description: str, properties: dict[str, Any]) -> dict[str, Any]:
    items = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "array", "description": description, "items": items}


ARITHMETIC_SCHEMA = _list(
    "How each device computes in each type that layers have there.",
    {
        "device": _TEXT,
        "software": {**_TEXT, "description": "Its version; empty for a device without versions."},
        "precision": {**_TEXT, "description": "The computation type."},
        "layers": {"type": "integer", "minimum": 1},
        "accumulator": {**_TEXT, "description": "The type that sums are kept in."},
        "rounds": {"enum": ["group", "layer"], "description": "After what results are rounded."},
        "rounding": _ROUNDING,
        "weight_rounding": _ROUNDING,
        "fidelity": _FIDELITY,
        "source": _TEXT,
        "approximations": _list(
            "Layers that the device computes in a way of its own.",
            {
                "kernel": _TEXT,
                "text": _TEXT,
                "layers": {"type": "array", "items": _TEXT},
                "fidelity": _FIDELITY,
                "source": _TEXT,
            },
        ),
    },
)
"""The part of a command's JSON Schema that describes `arithmetic_report`."""
