"""The JSON Schema of what `dryfit place --json` prints: the promise that programs may rely on.

Published in docs as `place.schema.json`. New keys may appear in later versions; those that are required here stay.
"""

from __future__ import annotations

import json
from typing import Any

from dryfit.cli.check_schema import ERROR_FACTOR

_TEXT: dict[str, Any] = {"type": "string"}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_COUNTS: dict[str, Any] = {"type": "object", "additionalProperties": _COUNT}
_PERHAPS: dict[str, Any] = {"type": ["number", "null"], "minimum": 0}
_ESTIMATED = "Estimated, never measured; null where a target estimates none."


def _object(properties: dict[str, Any], description: str = "") -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": list(properties)}
    return {"description": description, **schema} if description else schema


def _list(items: dict[str, Any], description: str) -> dict[str, Any]:
    return {"description": description, "type": "array", "items": items}


_OPTION = _object(
    {
        "title": {**_TEXT, "description": "What it is, and how it was found."},
        "is_before": {"type": "boolean", "description": "Whether it is what a build does by itself."},
        "is_chosen": {"type": "boolean", "description": "Whether it is the proposal."},
        "is_exact": {"type": "boolean", "description": "Whether its method finds the best by the method's own model."},
        "value": {"type": "number", "minimum": 0, "description": "What the objective compares; less is better."},
        "latency_microseconds": {**_PERHAPS, "description": f"Segments and copies one after the other. {_ESTIMATED}"},
        "error_factor": ERROR_FACTOR,
        "lower_bounds": {**_TEXTS, "description": "Devices whose time is one that they cannot beat."},
        "images_per_second": {
            **_PERHAPS,
            "description": f"With all devices and copies at work at once on different runs. {_ESTIMATED}",
        },
        "energy": {
            "description": f"Of segments and copies, in one run. {_ESTIMATED}",
            **_object({"amount": {"type": "number", "minimum": 0}, "unit": _TEXT}),
            "type": ["object", "null"],
        },
        "energy_error_factor": ERROR_FACTOR,
        "layers_by_device": _COUNTS,
        "segments_by_device": {**_COUNTS, "description": "Of a DLA: loadables."},
        "macs_by_device": {**_COUNTS, "description": "Multiply-accumulates of one run."},
        "copies": {**_COUNT, "description": "Of tensors between devices, in one run."},
    }
)

_CHANGE = _object(
    {
        "layers": {**_TEXTS, "description": "Neighbours, in execution order."},
        "from": _TEXT,
        "to": _TEXT,
        "reason": {**_TEXT, "description": "Why they go."},
        "value_otherwise": {
            **_PERHAPS,
            "description": "The objective's value if they alone stayed; null where they could not.",
        },
    }
)

_BASIS = _object(
    {
        "of": {**_TEXT, "description": "A device, copies, or the energy of one of these."},
        "basis": {**_TEXT, "description": "How it was reckoned."},
        "source": _TEXT,
        "fidelity": {"enum": ["documented", "inferred", "confirmed"]},
    }
)

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "dryfit place --json",
    **_object(
        {
            "model": _TEXT,
            "device": {**_TEXT, "description": "The default device: layers stay there unless they are told to leave."},
            "platform": _TEXT,
            "power_mode": {"type": ["string", "null"], "description": "null where the platform states none."},
            "software": _TEXT,
            "precisions": _TEXTS,
            "fallback": {**_TEXT, "description": "The other device."},
            "assumed": {**_TEXTS, "description": "Options that were taken because nothing was said."},
            "note": {**_TEXT, "description": "That every figure is an estimate."},
            "objective": {"enum": ["latency", "throughput", "energy", "dla-coverage"]},
            "unit": {**_TEXT, "description": "Of the values that are compared."},
            "compared_by": {**_TEXT, "description": "The model of the comparison and those of the search."},
            "bases": _list(_BASIS, "What the estimates rest on."),
            "lower_bounds": {
                "description": "Devices whose time is a bound from below, so that layers are sent there too readily; "
                "null where there are none, or times do not count.",
                **_object(
                    {
                        "devices": _TEXTS,
                        "factor": {
                            **_PERHAPS,
                            "description": "The proposal is better than the build's own placement as long as they take "
                            "less than so many times what is estimated; null for however long, and where nothing "
                            "changes.",
                        },
                    }
                ),
                "type": ["object", "null"],
            },
            "options": _list(_OPTION, "All placements that were compared; the first is what a build does by itself."),
            "changes": _list(_CHANGE, "What the proposal changes."),
            "placement": {
                "description": "Layer to device, for all layers that have one of their own: the contents of the file.",
                "type": "object",
                "additionalProperties": _TEXT,
            },
            "output": {"type": ["string", "null"], "description": "The file that was written."},
        }
    ),
}


def schema_text() -> str:
    """The schema as the text of a file."""
    return json.dumps(SCHEMA, indent=2)
