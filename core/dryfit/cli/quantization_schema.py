"""The JSON Schema of what `dryfit explain --quantization --json` prints; published as `quantization.schema.json`."""

from __future__ import annotations

import json
from typing import Any

from dryfit.answers.quantization_trace import QuantizationOutcome
from dryfit.builder.precision.chosen import PrecisionCause
from dryfit.cli.check_schema import SCHEMA as CHECK_SCHEMA
from dryfit.quantization.rewrites import RewriteAction
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
    "precision": {
        **_TEXT,
        "description": "The type that the layer is computed in; where Q/DQ are part of its step, that of its operands.",
    },
    "cause": {
        "enum": [*(cause.value for cause in PrecisionCause), None],
        "description": "What decided; null for a layer without a place, and for a computation of shapes.",
    },
    "reason": {**_TEXT, "description": "The same in words."},
    "missing_scales": {**_TEXTS, "description": "Tensors of the layer without a scale, where that is the cause."},
}

_REWRITE = {
    "pass": {**_TEXT, "description": "The pass that made the step."},
    "action": {"enum": [action.value for action in RewriteAction]},
    "over": {**_TEXTS, "description": "The layers that it moved over, was merged into or met."},
    "reason": _TEXT,
    "compared_scales": {**_TEXTS, "description": "Constants whose values had to be equal."},
}

_QUANTIZATION = {
    "name": {**_TEXT, "description": "The quantize or dequantize layer."},
    "kind": {"enum": ["quantize", "dequantize"]},
    "onnx_nodes": _TEXTS,
    "tensor": {"type": ["string", "null"], "description": "Its tensor in real numbers."},
    "type": {"type": ["string", "null"], "description": "The type on its other side."},
    "scale": {
        "anyOf": [_SCALE, {"type": "null"}],
        "description": "Null where there are several, and where it is computed.",
    },
    "granularity": {**_TEXT, "description": "What shares a scale."},
    "outcome": {"enum": [outcome.value for outcome in QuantizationOutcome], "description": "Where it ended up."},
    "steps": {**_TEXTS, "description": "The steps that it is part of, by their main layers, or what it went into."},
    "part": {**_TEXT, "description": "Which part of these it is: input, output, inside; empty for none."},
    "reason": {**_TEXT, "description": "Why it ended up there, or is alone."},
    "rewrites": _list(_REWRITE, "What the passes did to it, in order."),
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
            "layers": _list(
                _LAYER,
                "In the order of the network; constants belong to their readers, and Q/DQ are told in `quantizations`.",
            ),
            "quantizations": _list(_QUANTIZATION, "Quantize and dequantize layers, in the order of the model."),
            "tensors": _list(
                _TENSOR,
                "Floating-point tensors that are no constants, in the order of the network; none where Q/DQ have the "
                "scales.",
            ),
            "conflicts": _list(_CONFLICT, "Ranges that contradict each other."),
            "unknown": {**_TEXTS, "description": "Names of scales that no tensor of the network has."},
            "warnings": _TEXTS,
            "summary": _object(
                {
                    "layers": _COUNT,
                    "fallback_layers": {
                        **_COUNT,
                        "description": "Layers that are not on the device that they were given.",
                    },
                    "layers_by_precision": _COUNTS,
                    "quantizations": _COUNT,
                    "quantizations_by_outcome": _COUNTS,
                    "tensors": _COUNT,
                    "tensors_by_origin": _COUNTS,
                    "macs": {**_COUNT, "description": "Multiply-accumulates of one run."},
                    "macs_by_type": {**_COUNTS, "description": "The same by the type of the operands."},
                    "macs_integer_share": {"type": "number", "minimum": 0, "maximum": 1},
                }
            ),
        }
    ),
}


def schema_text() -> str:
    """The schema as the text of a file."""
    return json.dumps(SCHEMA, indent=2)
