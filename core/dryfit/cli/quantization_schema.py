"""The JSON Schema of what `dryfit explain --quantization --json` prints; published as `quantization.schema.json`."""

from __future__ import annotations

import json
from typing import Any

from dryfit.builder.precision_reason import PrecisionCause
from dryfit.cli.check_schema import SCHEMA as CHECK_SCHEMA
from dryfit.quantization.scale_table import RangeOrigin

_TEXT: dict[str, Any] = {"type": "string"}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_COUNTS: dict[str, Any] = {"type": "object", "additionalProperties": _COUNT}
_SCALE: dict[str, Any] = {"type": "number", "exclusiveMinimum": 0}

_CHECKED = CHECK_SCHEMA["properties"]
_HEAD = ("model", "device", "platform", "software", "precisions", "fallback", "simulated", "plugins")


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _list(properties: dict[str, Any], description: str) -> dict[str, Any]:
    return {"description": description, "type": "array", "items": _object(properties)}


_LAYER = {
    **{key: _CHECKED["layers"]["items"]["properties"][key] for key in ("name", "kind", "onnx_nodes", "device")},
    "precision": {**_TEXT, "description": "The type that the layer is computed in."},
    "cause": {
        "enum": [*(cause.value for cause in PrecisionCause), None],
        "description": "What decided; null for a layer without a place, and for a computation of shapes.",
    },
    "reason": {**_TEXT, "description": "The same in words."},
    "missing_scales": {**_TEXTS, "description": "Tensors of the layer without a scale, where that is the cause."},
}

_TENSOR = {
    "name": _TEXT,
    "scale": {"anyOf": [_SCALE, {"type": "null"}], "description": "A binary32 number; null where it is missing."},
    "range": {
        "anyOf": [
            {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
            {"type": "null"},
        ],
        "description": "The smallest and the largest value.",
    },
    "origin": {"enum": [origin.value for origin in RangeOrigin]},
    "sources": {**_TEXTS, "description": "The tensors that it is taken from."},
    "rule": {**_TEXT, "description": "By which kinds of layers."},
    "reason": {**_TEXT, "description": "Origin, sources and rule in words; why it is missing."},
    "needed_by": {**_TEXTS, "description": "The layers that read or write the tensor."},
}

_CONFLICT = {
    "tensor": {**_TEXT, "description": "Its range was set by hand, and stays."},
    "scale": _SCALE,
    "other": {**_TEXT, "description": "The tensor with which it should share a range."},
    "other_scale": _SCALE,
    "rule": _TEXT,
}

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "dryfit explain --quantization --json",
    **_object(
        {
            **{key: _CHECKED[key] for key in _HEAD},
            "assumed": {**_TEXTS, "description": "Options that were taken because nothing was said."},
            "layer": {"type": ["string", "null"], "description": "The layer that was asked about; null for all."},
            "layers": _list(_LAYER, "In the order of the network; constants belong to their readers."),
            "tensors": _list(_TENSOR, "Floating-point tensors that are no constants, in the order of the network."),
            "conflicts": _list(_CONFLICT, "Ranges that contradict each other."),
            "unknown": {**_TEXTS, "description": "Names of scales that no tensor of the network has."},
            "warnings": _TEXTS,
            "summary": _object(
                {
                    "layers": _COUNT,
                    "layers_by_precision": _COUNTS,
                    "tensors": _COUNT,
                    "tensors_by_origin": _COUNTS,
                }
            ),
        }
    ),
}


def schema_text() -> str:
    """The schema as the text of a file."""
    return json.dumps(SCHEMA, indent=2)
