"""The JSON Schema of what `dryfit translate --json` prints; published as `translate.schema.json`."""

from __future__ import annotations

import json
from typing import Any

from dryfit.quantization.scale_table import RangeOrigin

_TEXT: dict[str, Any] = {"type": "string"}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_NUMBER: dict[str, Any] = {"type": "number", "minimum": 0}
_SCALE: dict[str, Any] = {"type": "number", "exclusiveMinimum": 0}


def _or_null(schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}], "description": description}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _list(properties: dict[str, Any], description: str) -> dict[str, Any]:
    return {"description": description, "type": "array", "items": _object(properties)}


_ORIGINS = ["stated", *(origin.value for origin in RangeOrigin)]

_TENSOR = {
    "name": _TEXT,
    "scale": _or_null(_SCALE, "A binary32 number; null where it is missing."),
    "origin": {"enum": _ORIGINS, "description": "`stated` by a Q/DQ pair; the others as in quantization.schema.json."},
    "source": {**_TEXT, "description": "The tensor that it comes from, for propagated and shared ones."},
    "rule": {**_TEXT, "description": "The kind of layer by which it follows."},
    "stated": _or_null(_SCALE, "What the Q/DQ model stated, where that was replaced or taken."),
    "codes": _or_null(_TEXT, "The value of the Q/DQ model that holds the tensor's codes."),
}

_LAYER = {
    "name": _TEXT,
    "nodes": {**_TEXTS, "description": "ONNX nodes."},
    "precision": _TEXT,
    "output_type": _or_null(_TEXT, "What --every-rounding asks of the layer's output."),
    "missing": {**_TEXTS, "description": "Tensors without a scale, for a layer that loses its INT8."},
}

_WEIGHTS = {
    "node": _TEXT,
    "tensor": _TEXT,
    "channels": _COUNT,
    "same_channels": {**_COUNT, "description": "Channels that keep every code."},
    "changed_codes": _COUNT,
    "codes": _COUNT,
    "largest_difference": {**_NUMBER, "description": "Of a weight, as a share of its scale."},
}

_COMPARED = {
    "name": _TEXT,
    "output": {"type": "boolean"},
    "elements": _COUNT,
    "different": _or_null(_COUNT, "Codes that differ; null where one side is real, or the scales differ."),
    "largest_codes": _or_null(_COUNT, "The largest difference in codes; null likewise."),
    "largest_difference": {**_NUMBER, "description": "The largest in real numbers."},
    "decibels": _or_null({"type": "number"}, "Signal to difference; null where nothing differs."),
}

_PROOF = _object(
    {
        "samples": _COUNT,
        "tensors": _list(_COMPARED, "Tensors that both engines store."),
        "inside": {**_TEXTS, "description": "Quantized tensors that an engine has only inside a fused layer."},
        "codes": {**_COUNT, "description": "Codes that were compared."},
        "different": _COUNT,
        "largest_codes": _COUNT,
    }
)

_SUMMARY = (
    *("layers", "int8", "tensors", "scales", "codes", "different", "missing", "lost", "unequal", "weights"),
    "notes",
)

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "dryfit translate --json",
    **_object(
        {
            "model": _TEXT,
            "to": {"enum": ["qdq", "implicit"]},
            "device": _TEXT,
            "files": _list({"file": _TEXT, "use": _TEXT}, "What was written."),
            "tensors": _list(_TENSOR, "Floating-point tensors of the implicit network, in its order."),
            "layers": _list(_LAYER, "Layers that compute on real numbers or INT8."),
            "weights": _list(_WEIGHTS, "To implicit: what becomes of quantized weights."),
            "unequal": _list(
                {"tensor": _TEXT, "scale": _SCALE, "other": _TEXT, "other_scale": _SCALE, "rule": _TEXT},
                "Scales of which implicit quantization has one.",
            ),
            "borders": _list({"name": _TEXT, "scale": _SCALE}, "Inputs and outputs that were INT8."),
            "notes": {**_TEXTS, "description": "What the other form has no words for."},
            "proof": _or_null(_PROOF, "The comparison; null with --samples 0."),
            "summary": _object(dict.fromkeys(_SUMMARY, _COUNT)),
            "conditions": _list({"condition": _TEXT, "actual": _TEXT, "failed": {"type": "boolean"}}, "--fail-on."),
        }
    ),
}


def schema_text() -> str:
    """The schema as the text of a file."""
    return json.dumps(SCHEMA, indent=2)
