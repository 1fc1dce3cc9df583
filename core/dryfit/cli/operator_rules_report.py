"""What reports tell of quantize methods: which layers they compute, by which rules, and which they do not and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs

from dryfit.cli.console import print_list, print_table

if TYPE_CHECKING:
    from dryfit.builder.assessment import OperatorRule

_TEXT: dict[str, Any] = {"type": "string"}

OPERATORS_SCHEMA: dict[str, Any] = {
    "type": "array",
    "description": "Layers that quantize methods compute in integers, with the rule of the method.",
    "items": {
        "type": "object",
        "properties": {
            "layer": _TEXT,
            "method": {**_TEXT, "description": "The quantize method."},
            "operator": _TEXT,
            "formula": {**_TEXT, "description": "Empty where the method is not installed."},
            "fidelity": {"enum": ["documented", "inferred", "confirmed", ""]},
            "source": _TEXT,
        },
        "required": ["layer", "method", "operator", "formula", "fidelity", "source"],
    },
}
LEFT_SCHEMA: dict[str, Any] = {
    "type": "array",
    "description": "Layers that stay in real numbers though the network has a quantize method.",
    "items": {
        "type": "object",
        "properties": {"layer": _TEXT, "method": _TEXT, "reason": _TEXT},
        "required": ["layer", "method", "reason"],
    },
}


def operators_data(rules: Sequence[OperatorRule]) -> list[dict[str, str]]:
    """The rules as plain data."""
    return [attrs.asdict(rule) for rule in rules]


def print_operators(operators: Sequence[dict[str, str]], left: Sequence[dict[str, str]] = ()) -> None:
    """The rules with the count of their layers, and the layers that are left in real numbers.

    Args:
        operators: see `OPERATORS_SCHEMA`.
        left: see `LEFT_SCHEMA`.
    """
    keys = ("method", "operator", "formula", "fidelity", "source")
    counts = Counter(tuple(one[key] for key in keys) for one in operators)
    if counts:
        rows = [(method, operator, count, *facts) for (method, operator, *facts), count in counts.items()]
        print_table("Quantize methods", ["method", "operator", "layers", "formula", "fidelity", "source"], rows)
    entries = [(one["layer"], f"not by {one['method']}: {one['reason']}", "") for one in left]
    print_list("Layers that stay in real numbers", entries)
