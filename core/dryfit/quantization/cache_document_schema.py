"""The JSON Schema of dryfit's own file of ranges; published as `calibration-cache.schema.json`."""

from __future__ import annotations

import json
from typing import Any

from dryfit.quantization.cache_document import MARK, VERSION
from dryfit.quantization.scale_table import RangeOrigin

_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_PLAIN: dict[str, Any] = {
    "type": "object",
    "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
}

TENSOR: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "scale": {
            "type": ["number", "null"],
            "exclusiveMinimum": 0,
            "description": "The larger magnitude of the range divided by 127, rounded to binary32; null for none.",
        },
        "range": {
            "type": ["array", "null"],
            "items": {"type": "number"},
            "minItems": 2,
            "maxItems": 2,
            "description": "The least and the largest value.",
        },
        "origin": {"enum": [origin.value for origin in RangeOrigin]},
        "details": {**_PLAIN, "description": "What the calibrator told of the tensor."},
        "statistics": {
            "type": "object",
            "properties": {
                "count": {**_COUNT, "description": "Values that were seen."},
                "zeros": {**_COUNT, "description": "How many of them are zero."},
                "skipped": {**_COUNT, "description": "Values that were not finite and left out."},
                "minimum": {"type": "number", "description": "The least value that was seen."},
                "maximum": {"type": "number", "description": "The largest value that was seen."},
            },
            "description": "What calibration saw; empty where that is not known.",
        },
    },
    "required": ["name", "scale", "range"],
}

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "dryfit calibration cache",
    "type": "object",
    "properties": {
        "format": {"const": MARK, "description": "The first key."},
        "version": {"const": VERSION},
        "header": {"type": "string", "description": "TensorRT's first line; empty where there is none."},
        "facts": {
            **_PLAIN,
            "description": "How the ranges were found, such as model (sha256 of its file), calibrator and samples.",
        },
        "tensors": {"type": "array", "items": TENSOR, "description": "No tensor occurs twice."},
    },
    "required": ["format", "version", "tensors"],
}


def schema_text() -> str:
    """The schema as the text of a file."""
    return json.dumps(SCHEMA, indent=2)
