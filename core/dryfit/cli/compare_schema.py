"""The JSON Schema of what `dryfit compare --json` prints; published as `compare.schema.json`."""

from __future__ import annotations

import json
from typing import Any

from dryfit.cli.arithmetic_report import ARITHMETIC_SCHEMA
from dryfit.cli.check_schema import SCHEMA as CHECK_SCHEMA

_TEXT: dict[str, Any] = {"type": "string"}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_TRUTH: dict[str, Any] = {"type": "boolean"}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _list(properties: dict[str, Any], description: str) -> dict[str, Any]:
    return {"type": "array", "description": description, "items": _object(properties)}


def _or_null(schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}], "description": description}


_ROOT: dict[str, Any] = {"type": "number", "minimum": 0}
_NUMBER: dict[str, Any] = {
    "anyOf": [{"type": "number"}, {"enum": ["nan", "inf", "-inf"]}],
    "description": "In real numbers: codes times their scale.",
}
_ELEMENT = _object({"sample": _TEXT, "index": {"type": "array", "items": _COUNT}, "value": _NUMBER, "other": _NUMBER})

DIFFERENCE_SCHEMA = _object(
    {
        "elements": {**_COUNT, "description": "Of all samples."},
        "differing": {**_COUNT, "description": "Elements that differ by more than --tolerance."},
        "not_finite": {**_COUNT, "description": "Elements that the roots and ratios leave out."},
        "not_finite_differing": {
            **_COUNT,
            "description": "Those of them that are not the same on both sides, NaN as NaN. Fails --fail-below.",
        },
        "own_not_finite": {
            **_COUNT,
            "description": "Elements that the layer itself makes NaN or infinite, or unmakes.",
        },
        "inherited_not_finite": {**_COUNT, "description": "Elements that its inputs make so."},
        "signal": {**_ROOT, "description": "Root of the mean square of the other side's values."},
        "error": {**_ROOT, "description": "Root of the mean square of the differences."},
        "own_error": _or_null(_ROOT, "That of what the layer itself adds; null where its inputs are not known there."),
        "inherited_error": _or_null(_ROOT, "That of what comes with its inputs; null as above."),
        "sqnr_db": _or_null({"type": "number"}, "Signal to error; null where error or signal is 0."),
        "own_sqnr_db": _or_null({"type": "number"}, "Signal to own error; null as above, or where it is not known."),
        "inherited_sqnr_db": _or_null({"type": "number"}, "Signal to inherited error; null as above."),
        "first": _or_null(_ELEMENT, "The first element that differs, in the order of samples, row by row."),
        "largest": _or_null(_ELEMENT, "The element that differs most."),
    }
)

_TENSOR = {
    "tensor": {**_TEXT, "description": "The name in the model."},
    "stored_as": {**_TEXT, "description": "The name in the engine; unique."},
    "is_output": _TRUTH,
    "is_conversion": {**_TRUTH, "description": "Whether the engine layer changes the type, and does nothing else."},
    "type": _TEXT,
    "engine_layer": _TEXT,
    "layers": {**_TEXTS, "description": "Layers of the model in it."},
    "device": _TEXT,
    "kernel": {**_TEXT, "description": "The host kernel that runs it here."},
    "saturation": {
        "type": ["number", "null"],
        "minimum": 0,
        "maximum": 1,
        "description": "Share of elements at an end of INT8 or FP16; null for other types.",
    },
    "differences": {
        "type": "object",
        "description": "By the name of the side; null where it does not store the tensor, or with another shape.",
        "additionalProperties": {"anyOf": [DIFFERENCE_SCHEMA, {"type": "null"}]},
    },
    "unfed": {
        "type": "object",
        "description": "By the name of the side: tensors that the engine layer reads and the side does not store, as "
        "it joins other layers; what the layer itself adds is not known then.",
        "additionalProperties": _TEXTS,
    },
}

OVERFLOWS = _list(
    {
        "engine_layer": _TEXT,
        "layers": {**_TEXTS, "description": "Layers of the model in it."},
        "tensor": _TEXT,
        "overflowed": {**_COUNT, "description": "Elements that the layer makes NaN, infinite or an end of FP16."},
        "elements": _COUNT,
        "overflowed_to": {**_ROOT, "description": "Their largest magnitude on the other side, which is finite."},
    },
    "FP16 tensors whose layers themselves overflow, in the order of execution.",
)

_SIDE = {
    "name": {**_TEXT, "description": "As --against has it."},
    "arithmetic": {**ARITHMETIC_SCHEMA, "description": "Empty for fp32: the model is run by its definition."},
    "compared": {**_COUNT, "description": "Tensors that it stores too."},
    "differing": _COUNT,
    "first_error": _or_null(_TEXT, "`stored_as` of the first tensor to which its layer itself adds an error."),
    "overflows": OVERFLOWS,
    "largest_errors": {**_TEXTS, "description": "`stored_as` of the tensors to which layers add most, worst first."},
}

_SHARED = ("model", "device", "platform", "software", "precisions", "fallback", "simulated", "plugins")

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "dryfit compare --json",
    **_object(
        {
            **{key: CHECK_SCHEMA["properties"][key] for key in _SHARED},
            "arithmetic": ARITHMETIC_SCHEMA,
            "weights": {**_TEXT, "description": "What the weights are that the sides compute with."},
            "weights_rounded": {
                **_TEXTS,
                "description": "Engine layers that store weights in a form from which they are found to within some "
                "roundings of FP32.",
            },
            "weights_unknown": _list(
                {"layer": _TEXT, "reason": _TEXT},
                "Layers whose weights the engine does not tell: no side has what follows from them.",
            ),
            "samples": {**_TEXTS, "description": "Names of the samples."},
            "sides": _list(_SIDE, "In the order of --against."),
            "tensors": _list(_TENSOR, "Outputs of engine layers, in the order in which they are computed."),
            "left_out": {**_TEXTS, "description": "Tensors of the engine that stand for none of the model's."},
            "conditions": _list(
                {"condition": _TEXT, "actual": _TEXT, "failed": _TRUTH}, "Those of --fail-below, for each output."
            ),
        }
    ),
}


def schema_text() -> str:
    """The schema as the text of a file."""
    return json.dumps(SCHEMA, indent=2)
