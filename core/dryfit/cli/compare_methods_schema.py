"""The JSON Schema of what `dryfit compare --methods --json` prints; published as `compare-methods.schema.json`."""

from __future__ import annotations

import json
from typing import Any

from dryfit.cli.check_schema import PLUGINS
from dryfit.cli.compare_schema import DIFFERENCE_SCHEMA

_TEXT: dict[str, Any] = {"type": "string"}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_COUNT_OR_NULL: dict[str, Any] = {"type": ["integer", "null"], "minimum": 0}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _list(properties: dict[str, Any], description: str) -> dict[str, Any]:
    return {"type": "array", "description": description, "items": _object(properties)}


def _by_method(schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"type": "object", "description": description, "additionalProperties": schema}


_METHOD = {
    "name": _TEXT,
    "title": {**_TEXT, "description": "Whose arithmetic it is."},
    "library": {**_TEXT, "description": "What it was held against; empty for a device."},
    "version": _TEXT,
    "operators": {**_COUNT, "description": "Layers that it computes."},
    "left": _list({"layer": _TEXT, "reason": _TEXT}, "Layers that stay in real numbers."),
    "compared": {**_COUNT, "description": "Tensors of codes that it and the first method store; 0 for the first."},
    "differing": {**_COUNT, "description": "Those of them that differ."},
    "first_parting": {
        "type": ["string", "null"],
        "description": "The first tensor whose layer itself gives other codes than by the first method.",
    },
}

_CODES = _object(
    {
        "elements": {**_COUNT, "description": "Of all samples."},
        "differing": {**_COUNT, "description": "Codes that differ by more than --tolerance, of a run of its own."},
        "largest": {**_COUNT, "description": "The largest difference, in codes; 0 where none differs."},
        "own_differing": {
            **_COUNT_OR_NULL,
            "description": "Codes that differ where the layer is given the first method's codes; null where the "
            "first method does not store all that it reads.",
        },
        "own_largest": {**_COUNT_OR_NULL, "description": "The largest difference of these; null as above."},
    }
)

_LAYER = {
    "layer": {**_TEXT, "description": "The name in the model."},
    "operator": _TEXT,
    "tensor": {**_TEXT, "description": "The codes that it gives; unique."},
    "type": {"enum": ["INT8", "UINT8"]},
    "formulas": _by_method(_TEXT, "Of each method that computes it, the formula."),
    "differences": _by_method(
        {"anyOf": [_CODES, {"type": "null"}]}, "Of each method but the first; null where not both store the codes."
    ),
}

_OUTPUT = {
    "tensor": _TEXT,
    "differences": _by_method(
        DIFFERENCE_SCHEMA, "Of each method but the first: its values beside the first method's. Own parts are null."
    ),
    "top_1": {
        "anyOf": [
            _by_method(_object({"decisions": _COUNT, "changed": _COUNT}), "Of each method but the first."),
            {"type": "null"},
        ],
        "description": "Class decisions that are another than the first method's; null where the output is no row of "
        "scores.",
    },
}

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "dryfit compare --methods --json",
    **_object(
        {
            "model": _TEXT,
            "device": {**_TEXT, "description": "That of this machine."},
            "plugins": PLUGINS,
            "samples": {"type": "array", "items": _TEXT, "description": "Names of the samples."},
            "methods": _list(_METHOD, "In the order of --methods."),
            "layers": _list(_LAYER, "Tensors of codes that a method computes, in the order in which it does."),
            "outputs": _list(_OUTPUT, "Of the model."),
            "conditions": _list(
                {"condition": _TEXT, "actual": _TEXT, "failed": {"type": "boolean"}},
                "Those of --fail-below, for each output.",
            ),
        }
    ),
}


def schema_text() -> str:
    """The schema as the text of a file."""
    return json.dumps(SCHEMA, indent=2)
