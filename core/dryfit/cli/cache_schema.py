"""The JSON Schemas of what the commands of `dryfit cache` print with `--json`; published as `cache.schema.json`."""

from __future__ import annotations

import json
from typing import Any

from dryfit.cli.cache_files import FORM_NAMES
from dryfit.quantization.cache_comparison import FindingKind
from dryfit.quantization.cache_document_schema import TENSOR

_TEXT: dict[str, Any] = {"type": "string"}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_SCALE: dict[str, Any] = {"type": ["number", "null"], "exclusiveMinimum": 0}
_SHARE: dict[str, Any] = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
_HEADER: dict[str, Any] = {
    "type": ["string", "null"],
    "description": "TensorRT's first line; null where there is none.",
}
_FORM: dict[str, Any] = {"enum": list(FORM_NAMES)}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _list(properties: dict[str, Any], description: str = "") -> dict[str, Any]:
    schema = {"type": "array", "items": _object(properties)}
    return {"description": description, **schema} if description else schema


_CONDITIONS = _list({"condition": _TEXT, "actual": _TEXT, "failed": {"type": "boolean"}}, "Those of --fail-on.")

_WRITTEN = {
    "output": {**_TEXT, "description": "The file that was written."},
    "form": _FORM,
    "tensors": {**_COUNT, "description": "Those that were written."},
    "left_out": {**_TEXTS, "description": "Tensors without a scale, for which the form has no place."},
}

SHOW = _object(
    {
        "file": _TEXT,
        "form": _FORM,
        "header": _HEADER,
        "algorithm": {"type": ["string", "null"], "description": "TensorRT's name; null where it is not known."},
        "tensorrt_version": {"type": ["string", "null"]},
        "cutoff": {**_SHARE, "description": "Of the legacy algorithm."},
        "quantile": {**_SHARE, "description": "Of the legacy algorithm."},
        "facts": {"type": "object", "description": "What else the file tells of how the ranges were found."},
        "tensors": _list(
            {**TENSOR["properties"], "place": {**_TEXT, "description": "Where in the file, such as `line 3`."}},
            "In the order of the file.",
        ),
    }
)

DIFF = _object(
    {
        "first": _TEXT,
        "second": _TEXT,
        "changed": _list(
            {
                "name": _TEXT,
                "first": _SCALE,
                "second": _SCALE,
                "ratio": {
                    "type": ["number", "null"],
                    "exclusiveMinimum": 1,
                    "description": "The larger scale divided by the smaller; null where one file has none.",
                },
            },
            "The largest ratio first.",
        ),
        "equal": {**_COUNT, "description": "Tensors with the same scale in both."},
        "added": {**_TEXTS, "description": "Tensors that only the second file has."},
        "removed": {**_TEXTS, "description": "Tensors that only the first file has."},
        "conditions": _CONDITIONS,
    }
)

MERGE = _object(
    {
        "files": _TEXTS,
        **_WRITTEN,
        "conflicts": _list(
            {"name": _TEXT, "scales": _list({"file": _TEXT, "scale": {**_SCALE, "type": "number"}})},
            "Tensors with different scales.",
        ),
    }
)

CONVERT = _object({"file": _TEXT, **_WRITTEN, "header": _HEADER})

CHECK = _object(
    {
        "file": _TEXT,
        "form": _FORM,
        "model": {"type": ["string", "null"]},
        "tensors": {**_COUNT, "description": "Different names in the file."},
        "findings": _list(
            {
                "kind": {"enum": [kind.value for kind in FindingKind]},
                "tensor": {**_TEXT, "description": "Empty where the finding is about none."},
                "place": {**_TEXT, "description": "Where in the file; empty where it is about none."},
                "text": _TEXT,
            }
        ),
        "summary": {
            **_object({kind.value: _COUNT for kind in FindingKind}),
            "description": "How many findings there are of each kind.",
        },
        "conditions": _CONDITIONS,
    }
)

_ANSWERS = {"show": SHOW, "diff": DIFF, "merge": MERGE, "convert": CONVERT, "check": CHECK}

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "dryfit cache --json",
    "oneOf": [{"title": f"dryfit cache {name} --json", **answer} for name, answer in _ANSWERS.items()],
}


def schema_text() -> str:
    """The schema as the text of a file."""
    return json.dumps(SCHEMA, indent=2)
