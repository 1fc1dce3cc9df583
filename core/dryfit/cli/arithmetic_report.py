"""The arithmetic of an engine as plain data, for commands whose answers are not records yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dryfit.answers import arithmetic
from dryfit.answers.json_data import plain
from dryfit.cli.console import show
from dryfit.engine.plan import Plan


def plan_arithmetic(plan: Plan) -> list[dict[str, Any]]:
    """The arithmetic of an engine's layers."""
    found: list[dict[str, Any]] = plain(arithmetic.plan_arithmetic(plan))
    return found


def print_arithmetic(entries: Sequence[Mapping[str, Any]], title: str = "Arithmetic") -> None:
    """The table, and below it the approximations with their sources."""
    found = [
        arithmetic.LayerArithmetic(
            **{**one, "approximations": [arithmetic.ApproximatedLayers(**each) for each in one["approximations"]]}
        )
        for one in entries
    ]
    show(arithmetic.arithmetic_blocks(found, title))


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
"""The part of a command's JSON Schema that describes `plan_arithmetic`."""
