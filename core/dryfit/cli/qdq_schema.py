"""The JSON Schema of what `dryfit qdq lint --json` prints; published as `qdq.schema.json`."""

from __future__ import annotations

import json
from typing import Any

from dryfit.cli.check_schema import SCHEMA as CHECK_SCHEMA
from dryfit.quantization.lint import SEVERITIES

_TEXT: dict[str, Any] = {"type": "string"}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_SEVERITY: dict[str, Any] = {"enum": list(SEVERITIES)}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _list(properties: dict[str, Any], description: str) -> dict[str, Any]:
    return {"description": description, "type": "array", "items": _object(properties)}


_FINDING = {
    "rule": {**_TEXT, "description": "The rule's id."},
    "severity": _SEVERITY,
    "layer": {**_TEXT, "description": "The layer."},
    "kind": {**_TEXT, "description": "Its kind."},
    "onnx_nodes": {"type": "array", "items": _TEXT, "description": "The nodes of the model that it comes from."},
    "tensor": {**_TEXT, "description": "The tensor that it is about."},
    "found": {**_TEXT, "description": "What was found, in one sentence."},
}

_RULE = {
    "rule": {**_TEXT, "description": "Its id."},
    "severity": _SEVERITY,
    "text": {**_TEXT, "description": "What is recommended."},
    "remedy": {**_TEXT, "description": "What to do about a finding."},
    "source": _TEXT,
    "findings": {**_COUNT, "description": "How many findings there are."},
}

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "dryfit qdq lint --json",
    **_object(
        {
            "model": {**_TEXT, "description": "The file."},
            "findings": _list(_FINDING, "Rule by rule, and in each in the order of the model."),
            "rules": _list(_RULE, "All rules: errors first, then warnings and notes."),
            "summary": _object(
                dict.fromkeys(("quantizes", "dequantizes", "findings", *(f"{one}s" for one in SEVERITIES)), _COUNT)
            ),
            "conditions": CHECK_SCHEMA["properties"]["conditions"],
        }
    ),
}


def schema_text() -> str:
    """The schema as the text of a file."""
    return json.dumps(SCHEMA, indent=2)
