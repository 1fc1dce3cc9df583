"""The JSON Schema of what `dryfit check --json` prints: the promise that programs may rely on.

Published in docs as `check.schema.json`. New keys may appear in later versions; those that are required here stay.
"""

from __future__ import annotations

import json
from typing import Any

from dryfit.cli.operator_rules_report import OPERATORS_SCHEMA

_TEXT: dict[str, Any] = {"type": "string"}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}


def _object(properties: dict[str, Any], description: str = "") -> dict[str, Any]:
    """An object in which every one of these properties is required."""
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": list(properties)}
    return {"description": description, **schema} if description else schema


def _list(items: dict[str, Any], description: str) -> dict[str, Any]:
    return {"description": description, "type": "array", "items": items}


_VIOLATION = _object(
    {
        "rule": {**_TEXT, "description": "Stable id; `dryfit explain-rule` tells more."},
        "parameter": {**_TEXT, "description": "What was looked at."},
        "actual": {**_TEXT, "description": "What was found."},
        "allowed": {**_TEXT, "description": "What would pass."},
        "message": {**_TEXT, "description": "Both in one sentence."},
        "remedy": {**_TEXT, "description": "What can be done; may be empty."},
        "source": {**_TEXT, "description": "Document and section."},
        "fidelity": {"enum": ["documented", "inferred", "confirmed"]},
    }
)

_VERDICT = _object(
    {
        "supported": {"type": "boolean"},
        "violations": _list(_VIOLATION, "Every rule that fails; none where the layer is supported."),
        "warnings": _list(_VIOLATION, "Rules that do not decide, and did not hold."),
    }
)

_LAYER = _object(
    {
        "name": _TEXT,
        "kind": _TEXT,
        "onnx_nodes": {**_TEXTS, "description": "Names of the nodes that the layer came from."},
        "device": {"type": ["string", "null"], "description": "Null for a layer that can run nowhere it may go."},
        "segment": {"type": ["integer", "null"], "description": "Null where it has none: nowhere, or on the host."},
        "precision": {**_TEXT, "description": "The type that it is computed in."},
        "cause": {**_TEXT, "description": "Why it is there."},
        "verdicts": {
            "description": "Device to verdict, for the devices that were asked.",
            "type": "object",
            "additionalProperties": _VERDICT,
        },
    }
)

ERROR_FACTOR = {
    "type": ["number", "null"],
    "minimum": 1,
    "description": "How far the figure may be off, as a factor up or down: 1.15 for 15 %, 10 for an order of "
    "magnitude; null where that is not known.",
}

ENERGY = {
    **_object(
        {
            "amount": {"type": "number", "minimum": 0},
            "basis": {**_TEXT, "description": "How it was reckoned."},
            "source": {**_TEXT, "description": "What it rests on."},
            "unit": {
                **_TEXT,
                "description": "Joules, or what the devices of a board have in common where none are known.",
            },
        }
    ),
    "type": ["object", "null"],
    "description": "Estimated, never measured; null for no estimate.",
}

ESTIMATE = _object(
    {
        "microseconds": {"type": ["number", "null"], "minimum": 0, "description": "Estimated, never measured."},
        "bytes_moved": {**_COUNT, "description": "Estimated."},
        "macs": {**_COUNT, "description": "Multiply-accumulates."},
        "basis": {**_TEXT, "description": "How it was reckoned."},
        "source": {**_TEXT, "description": "What it rests on."},
        "fidelity": {"enum": ["documented", "inferred", "confirmed"]},
        "energy": ENERGY,
        "error_factor": ERROR_FACTOR,
        "is_lower_bound": {"type": "boolean", "description": "Whether the device cannot beat the time, nor reach it."},
    },
    "The target's estimate of one run.",
)

_SEGMENT = _object(
    {
        "id": _COUNT,
        "device": _TEXT,
        "layers": _TEXTS,
        "inputs": _TEXTS,
        "outputs": _TEXTS,
        "pools": {"description": "Pool to bytes.", "type": "object", "additionalProperties": _COUNT},
        "cut_cause": {**_TEXT, "description": "Why it does not continue an earlier segment of its device."},
    }
)
_SEGMENT["properties"]["estimate"] = {**ESTIMATE, "description": "Only where the device's target estimates costs."}

_OFFLOADING = _object(
    {
        "device": _TEXT,
        "candidates": {**_COUNT, "description": "Segments that were to be the device's."},
        "offloaded": {**_COUNT, "description": "Segments that are."},
        "pools": {
            "description": "Pool to the bytes that these need in all.",
            "type": "object",
            "additionalProperties": _COUNT,
        },
        "rejected": _list(
            _object(
                {
                    "layers": _TEXTS,
                    "cause": {**_TEXT, "description": "Why they could not stay on the device."},
                    "short_of": _list(
                        _object({"pool": _TEXT, "needed": _COUNT, "limit": _COUNT}),
                        "The memory pools that fell short; none where something else was in the way.",
                    ),
                    "fallback": {"type": ["string", "null"], "description": "Where they went; null for nowhere."},
                }
            ),
            "The others.",
        ),
    }
)

_REFORMAT = _object(
    {
        "tensor": _TEXT,
        "from": _TEXT,
        "to": _TEXT,
        "bytes": _COUNT,
        "cause": {**_TEXT, "description": "Who gives what, and who takes what."},
        "rule": {**_TEXT, "description": "Stable id of the reason; `dryfit explain-rule` tells more."},
    }
)

_SUMMARY = _object(
    {
        "layers": _COUNT,
        "layers_by_device": {"type": "object", "additionalProperties": _COUNT},
        "precisions_by_device": {
            "description": "Device to the types that its layers are computed in, each with the number of layers.",
            "type": "object",
            "additionalProperties": {"type": "object", "additionalProperties": _COUNT},
        },
        "fallback_layers": {**_COUNT, "description": "Layers that are not on the device that they were given."},
        "unplaced_layers": {**_COUNT, "description": "Layers that can run nowhere they may go."},
        "segments": _COUNT,
        "segments_by_device": {"type": "object", "additionalProperties": _COUNT},
        "reformats": _COUNT,
        "reformat_bytes": _COUNT,
        "warnings": {**_COUNT, "description": "Warnings about layers on the device where they run."},
    }
)

_CONDITION = _object(
    {
        "condition": {**_TEXT, "description": "As --fail-on states it."},
        "actual": {**_TEXT, "description": "What was found."},
        "failed": {"type": "boolean", "description": "Whether it holds, so that the exit code is 1."},
    }
)

PLUGINS = {**_TEXTS, "description": "Plugins that were active, each as `name version (distribution)`; sorted."}

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "dryfit check --json",
    **_object(
        {
            "model": {**_TEXT, "description": "The file that was asked about."},
            "device": {**_TEXT, "description": "Default device of the layers."},
            "platform": {**_TEXT, "description": "Its variant."},
            "software": {**_TEXT, "description": "The version whose rules hold; empty where there is one rule set."},
            "precisions": {**_TEXTS, "description": "Allowed computation types beside FP32."},
            "fallback": {"type": ["string", "null"], "description": "Device of layers that the first refuses."},
            "assumed": {**_TEXTS, "description": "The defaults that were used, as options of the command line."},
            "simulated": {**_TEXT, "description": "What of the device is simulated."},
            "plugins": PLUGINS,
            "layers": _list(_LAYER, "In the order of the network."),
            "segments": _list(_SEGMENT, "In the order in which they run."),
            "offloading": _list(_OFFLOADING, "Devices with memory pools for their segments, and what they got."),
            "reformats": _list(_REFORMAT, "Copies between types, formats or devices."),
            "quantized_operators": OPERATORS_SCHEMA,
            "warnings": {
                **_TEXTS,
                "description": "One sentence a layer or segment that fell back, or a wish that is not granted.",
            },
            "refusals": {**_TEXTS, "description": "The errors that a build raises; none where it can be built."},
            "summary": _SUMMARY,
            "conditions": _list(_CONDITION, "The conditions of --fail-on, in their order."),
        }
    ),
}


def schema_text() -> str:
    """The schema as the text of a file."""
    return json.dumps(SCHEMA, indent=2)
