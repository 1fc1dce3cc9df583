"""The JSON Schema of what `dryfit plugins list` and `dryfit plugins doctor` print with `--json`; published in docs."""

from __future__ import annotations

import json
from typing import Any

from dryfit.plugins.discovery import GROUPS
from dryfit.plugins.installed_plugins import STATES

_TEXT: dict[str, Any] = {"type": "string"}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


_OWNER = {
    "group": {"enum": list(GROUPS), "description": "The entry-point group."},
    "name": {**_TEXT, "description": "The entry point's name."},
    "distribution": {**_TEXT, "description": "The package, its name normalised."},
    "version": {**_TEXT, "description": "The package's; empty where its metadata has none."},
}

_PLUGINS = {
    "type": "array",
    "description": "Sorted by package, group and name.",
    "items": _object(
        {
            **_OWNER,
            "value": {**_TEXT, "description": "What the entry point names."},
            "registers": {**_TEXT, "description": "What it brings, as far as its name or source tells."},
            "state": {"enum": list(STATES), "description": "`available`: nothing has been tried."},
            "reason": {**_TEXT, "description": "By what it is disabled, why it failed, who else claims its name."},
        }
    ),
}

_FINDINGS = {
    "type": "array",
    "description": "Empty where all is well; the command then ends with 0.",
    "items": _object(
        {
            **_OWNER,
            "message": {**_TEXT, "description": "What is wrong, in one line."},
            "hook": {**_TEXT, "description": "The hook whose call failed; empty where the plugin itself did."},
            "remedy": {**_TEXT, "description": "What can be done."},
            "traceback": {**_TEXT, "description": "Empty where no exception was raised."},
            "part": {**_TEXT, "description": "The part of a target that is wrong; empty where it is not one part."},
            "place": {**_TEXT, "description": "`file:line` in the plugin's own files; empty where that is not known."},
        }
    ),
}

_IDLE_SWITCHES = {
    "type": "object",
    "description": "For each environment variable that switches plugins its words that name nothing that is installed.",
    "additionalProperties": {"type": "array", "items": _TEXT},
}

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "dryfit plugins --json",
    "anyOf": [
        {
            "title": "dryfit plugins list --json",
            **_object({"plugins": _PLUGINS}),
            "not": {"required": ["findings"]},
        },
        {
            "title": "dryfit plugins doctor --json",
            **_object({"plugins": _PLUGINS, "findings": _FINDINGS, "idle_switches": _IDLE_SWITCHES}),
        },
    ],
}


def schema_text() -> str:
    """The schema as the text of a file."""
    return json.dumps(SCHEMA, indent=2)
