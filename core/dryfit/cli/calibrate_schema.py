"""The JSON Schema of what `dryfit calibrate --json` prints; published in docs."""

from __future__ import annotations

import json
from typing import Any

_TEXT: dict[str, Any] = {"type": "string"}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_NUMBER: dict[str, Any] = {"type": "number", "minimum": 0}
_PLACE: dict[str, Any] = {"type": ["string", "null"]}
_SIZE: dict[str, Any] = {"type": ["number", "null"], "minimum": 0}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


_TENSOR = _object(
    {
        "name": _TEXT,
        "threshold": {**_SIZE, "description": "The range reaches from minus this to this; null where there is none."},
        "scale": {**_SIZE, "description": "threshold / 127, rounded to binary32."},
        "largest": {**_SIZE, "description": "The largest magnitude that was seen; null where that is not known."},
        "skipped": {**_COUNT, "description": "Values that were not finite and left out."},
        "reason": {**_TEXT, "description": "Why there is no range; empty where there is one."},
        "details": {"type": "object", "description": "What else the calibrator tells, and whose range is shared."},
    }
)
_RUN = _object({"samples_before": _COUNT, "images": _COUNT, "seconds": _NUMBER, "images_per_second": _NUMBER})

RANGES = {
    "title": "dryfit calibrate MODEL --json",
    **_object(
        {
            "model": _TEXT,
            "calibrator": _TEXT,
            "options": {"type": "object", "description": "The calibrator's options and their values."},
            "samples": {**_COUNT, "description": "Those that the ranges come from, earlier runs included."},
            "run": {"oneOf": [_RUN, {"type": "null"}], "description": "null where the state was solved only."},
            "tensors": {"type": "array", "items": _TENSOR, "description": "In the order of execution."},
            "cache": {**_PLACE, "description": "The calibration cache that was written."},
            "state": {**_PLACE, "description": "The file of --state."},
        }
    ),
}

COMPARISON = {
    "title": "dryfit calibrate --state FILE --compare --json",
    **_object(
        {
            "state": _TEXT,
            "samples": _COUNT,
            "calibrators": {
                "type": "object",
                "description": "Calibrator to tensor to threshold.",
                "additionalProperties": {"type": "object", "additionalProperties": _SIZE},
            },
        }
    ),
}

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "dryfit calibrate --json",
    "oneOf": [RANGES, COMPARISON],
}


def schema_text() -> str:
    """The schema as the text of a file."""
    return json.dumps(SCHEMA, indent=2)
