"""The JSON Schema of what `dryfit export trtexec --json` prints; published in docs."""

from __future__ import annotations

import json
from typing import Any

_TEXT: dict[str, Any] = {"type": "string"}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}
_PROPERTIES: dict[str, Any] = {
    "model": {**_TEXT, "description": "The model, or the engine."},
    "tensorrt": {**_TEXT, "description": "The version of TensorRT that it is for."},
    "command": {
        "anyOf": [_TEXTS, {"type": "null"}],
        "description": "trtexec and its arguments, unquoted; null where a script alone was asked for.",
    },
    "shell": {"anyOf": [_TEXT, {"type": "null"}], "description": "The same as a shell takes it."},
    "files": {
        "type": "array",
        "items": {"type": "object", "properties": {"file": _TEXT, "use": _TEXT}, "required": ["file", "use"]},
        "description": "What was written.",
    },
    "notes": {**_TEXTS, "description": "What trtexec adds, and what means nothing to the board."},
}

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "dryfit export trtexec --json",
    "type": "object",
    "properties": _PROPERTIES,
    "required": list(_PROPERTIES),
}


def schema_text() -> str:
    """The schema as the text of a file."""
    return json.dumps(SCHEMA, indent=2)
