"""The JSON Schemas of what several commands print with `--json`: `build`, `inspect`, `run` and others.

They are published in docs. Those of `check` and `explain` are `check_schema` and `explain_schema`. New keys may appear
in later versions; those that are required here stay.
"""

from __future__ import annotations

import json
from typing import Any

from dryfit.cli.check_schema import PLUGINS
from dryfit.cli.operator_rules_report import OPERATORS_SCHEMA
from dryfit.cli.top_classes import TOP_CLASSES_SCHEMA

_TEXT: dict[str, Any] = {"type": "string"}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _list(properties: dict[str, Any], description: str = "") -> dict[str, Any]:
    schema = {"type": "array", "items": _object(properties)}
    return {"description": description, **schema} if description else schema


def _published(command: str, body: dict[str, Any]) -> dict[str, Any]:
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"dryfit {command} --json", **body}


RUN = _published(
    "run",
    _object(
        {
            "engine": {**_TEXT, "description": "The file: an engine, or a model that was built for the run."},
            "name": {**_TEXT, "description": "The engine's name."},
            "outputs": _list(
                {
                    "name": _TEXT,
                    "shape": {"type": "array", "items": _COUNT},
                    "type": {**_TEXT, "description": "numpy's name."},
                    "file": {"type": ["string", "null"], "description": "Null without --output-dir."},
                },
                "In the engine's order.",
            ),
            "runs": {"type": "integer", "minimum": 1},
            "host_milliseconds_a_run": {
                "type": "number",
                "minimum": 0,
                "description": "This machine's time, which says nothing of the device's.",
            },
            "host_milliseconds_by_layer": {
                "type": ["object", "null"],
                "additionalProperties": {"type": "number", "minimum": 0},
                "description": "Engine layer to median; null without --profile.",
            },
            "quantized_operators": OPERATORS_SCHEMA,
            "plugins": PLUGINS,
            "top_classes": TOP_CLASSES_SCHEMA,
        }
    ),
)


def run_text() -> str:
    """The schema of `run` as the text of a file."""
    return json.dumps(RUN, indent=2)
