"""The JSON Schemas of what `dryfit sparsity` prints with `--json`; published as `sparsity.schema.json`."""

from __future__ import annotations

import json
from typing import Any

from dryfit.cli.check_schema import SCHEMA as CHECK_SCHEMA

_TEXT: dict[str, Any] = {"type": "string"}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_SHARE: dict[str, Any] = {"type": "number", "minimum": 0, "maximum": 1}
_FLAG: dict[str, Any] = {"type": "boolean"}
_PERHAPS_TEXT: dict[str, Any] = {"type": ["string", "null"]}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _list(properties: dict[str, Any], description: str) -> dict[str, Any]:
    return {"description": description, "type": "array", "items": _object(properties)}


_VIOLATION = dict.fromkeys(("rule", "parameter", "actual", "allowed", "message", "remedy", "source", "fidelity"), _TEXT)

_LAYER = {
    "name": _TEXT,
    "kind": _TEXT,
    "onnx_nodes": _TEXTS,
    "device": {**_PERHAPS_TEXT, "description": "Where it runs; null where nothing can run it."},
    "asked": {**_PERHAPS_TEXT, "description": "The device whose rules were asked; null where none skips zeros."},
    "macs": {**_COUNT, "description": "Multiply-accumulates of one run, zeros counted."},
    "macs_share": {**_SHARE, "description": "Of all that layers with weights have."},
    "eligible": {**_FLAG, "description": "Whether other weights of the same shape would have their zeros skipped."},
    "has_pattern": {
        "type": ["boolean", "null"],
        "description": "Whether the stored weights have the pattern; null where that does not matter.",
    },
    "sparse": {**_FLAG, "description": "Whether zeros are skipped where the layer runs."},
    "violations": _list(_VIOLATION, "Why zeros are not skipped."),
    "warnings": _list(_VIOLATION, "Doubts that do not decide."),
    "notes": _list(_VIOLATION, "What is worth knowing."),
}

_SUMMARY = _object(
    {
        "layers": {**_COUNT, "description": "Layers with known weights."},
        "eligible": _COUNT,
        "unpruned": {**_COUNT, "description": "Eligible layers whose weights do not have the pattern."},
        "sparse": _COUNT,
        "macs": _COUNT,
        "eligible_macs_share": _SHARE,
        "sparse_macs_share": _SHARE,
    }
)

_ASKED = {
    "device": {**_TEXT, "description": "The device that was asked about."},
    "platform": _TEXT,
    "software": _TEXT,
    "precisions": _TEXTS,
    "fallback": _PERHAPS_TEXT,
    "assumed": {**_TEXTS, "description": "Options that were taken because nothing was said."},
    "pattern": {**_PERHAPS_TEXT, "description": "Such as 2:4; null where the device skips no zeros."},
}

CHECK = {
    "title": "dryfit sparsity check --json",
    **_object(
        {
            "model": _TEXT,
            **_ASKED,
            "note": {**_TEXT, "description": "That nothing was measured, and that results are those of dense kernels."},
            "layers": _list(_LAYER, "Those with known weights, in the order of the network."),
            "summary": _SUMMARY,
            "conditions": CHECK_SCHEMA["properties"]["conditions"],
        }
    ),
}

PRUNE = {
    "title": "dryfit sparsity prune --json",
    **_object(
        {
            "model": _TEXT,
            "output": {**_TEXT, "description": "The copy that was written."},
            **_ASKED,
            "pruned": _list(
                {
                    "name": {**_TEXT, "description": "Of the weights."},
                    "layers": {**_TEXTS, "description": "Several where they share the weights."},
                    "size": {**_COUNT, "description": "How many weights there are."},
                    "zeroed": {**_COUNT, "description": "How many were made 0."},
                    "energy_kept": {**_SHARE, "description": "What is left of the sum of their squares."},
                },
                "In the order of the network.",
            ),
            "left": _list({"name": _TEXT, "layers": _TEXTS, "reason": _TEXT}, "What would have gained and stays."),
            "before": _SUMMARY,
            "after": _SUMMARY,
            "note": {**_TEXT, "description": "What pruning means for the accuracy."},
        }
    ),
}

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "dryfit sparsity --json",
    "anyOf": [CHECK, PRUNE],
}


def schema_text() -> str:
    """The schema as the text of a file."""
    return json.dumps(SCHEMA, indent=2)
