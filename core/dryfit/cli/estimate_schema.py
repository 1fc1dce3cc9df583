"""The JSON Schema of what `dryfit estimate --json` prints: the promise that programs may rely on.

Published in docs as `estimate.schema.json`. New keys may appear in later versions; those that are required here stay.
"""

from __future__ import annotations

import json
from typing import Any

from dryfit.cli.check_schema import ENERGY, ERROR_FACTOR

_TEXT: dict[str, Any] = {"type": "string"}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_NUMBER: dict[str, Any] = {"type": "number", "minimum": 0}
_PERHAPS: dict[str, Any] = {"type": ["number", "null"], "minimum": 0}
_ESTIMATED = "Estimated, never measured; null where a target estimates none."


def _object(properties: dict[str, Any], description: str = "") -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": list(properties)}
    return {"description": description, **schema} if description else schema


def _list(items: dict[str, Any], description: str) -> dict[str, Any]:
    return {"description": description, "type": "array", "items": items}


_STEP = _object(
    {
        "segment": _COUNT,
        "device": _TEXT,
        "layers": {**_TEXTS, "description": "Those that the device runs as one."},
        "macs": {**_COUNT, "description": "Multiply-accumulates, without any rounding up."},
        "mac_cycles": {**_COUNT, "description": "Cycles of the device's multipliers."},
        "dram_bytes": {**_COUNT, "description": "Bytes between the device and its memory."},
        "compute_microseconds": _NUMBER,
        "memory_microseconds": _NUMBER,
        "overhead_microseconds": {**_NUMBER, "description": "What a step takes whatever its size."},
        "microseconds": {**_NUMBER, "description": "Of the whole step."},
        "bound": {"enum": ["compute", "memory", "overhead"], "description": "What takes most of the time."},
    }
)

_SEGMENT = _object(
    {
        "id": _COUNT,
        "device": _TEXT,
        "layers": {**_COUNT, "description": "How many layers of the network."},
        "microseconds": {**_PERHAPS, "description": _ESTIMATED},
        "dram_bytes": _COUNT,
        "macs": _COUNT,
        "energy": ENERGY,
        "basis": {**_TEXT, "description": "How it was reckoned."},
        "source": {**_TEXT, "description": "What it rests on."},
        "fidelity": {"enum": ["documented", "inferred", "confirmed"]},
        "error_factor": ERROR_FACTOR,
        "is_lower_bound": {"type": "boolean", "description": "Whether the device cannot beat the time, nor reach it."},
        "text": {**_TEXT, "description": "The time to two digits, with its error."},
    }
)

_TRANSFER = _object(
    {
        "tensor": _TEXT,
        "from": _TEXT,
        "to": _TEXT,
        "microseconds": {**_PERHAPS, "description": _ESTIMATED},
        "energy": ENERGY,
        "basis": _TEXT,
        "source": _TEXT,
        "error_factor": ERROR_FACTOR,
        "text": {**_TEXT, "description": "The time to two digits, with its error."},
    }
)

_NETWORK = _object(
    {
        "macs": _COUNT,
        "macs_on_device": {**_COUNT, "description": "Those of the segments on the device that was asked about."},
        "latency_microseconds": {**_PERHAPS, "description": f"Segments and copies one after the other. {_ESTIMATED}"},
        "latency_error_factor": ERROR_FACTOR,
        "latency_text": {**_TEXT, "description": "The latency to two digits, with its error."},
        "lower_bounds": {**_TEXTS, "description": "Devices whose time is one that they cannot beat."},
        "busy_microseconds": {**_PERHAPS, "description": f"Of one core of the device, in one run. {_ESTIMATED}"},
        "busy_error_factor": ERROR_FACTOR,
        "throughput": _list(
            _object({"cores": _COUNT, "images_per_second": _PERHAPS}),
            "By how many cores of the device work, each at a run of its own; copies and other devices left out.",
        ),
        "tops_used": {**_PERHAPS, "description": f"By all cores of the device, two operations a MAC. {_ESTIMATED}"},
        "pipeline_images_per_second": {
            **_PERHAPS,
            "description": f"With all devices and copies at work at once on different runs. {_ESTIMATED}",
        },
        "energy": {
            "description": f"Of segments and copies, in one run. {_ESTIMATED}",
            **_object({"amount": _NUMBER, "unit": _TEXT}),
            "type": ["object", "null"],
        },
        "energy_error_factor": ERROR_FACTOR,
        "without_time": {**_TEXTS, "description": "Devices whose targets estimate no time."},
    },
    "The whole network.",
)

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "dryfit estimate --json",
    **_object(
        {
            "model": _TEXT,
            "device": _TEXT,
            "platform": _TEXT,
            "power_mode": {"type": ["string", "null"], "description": "null where the platform states none."},
            "software": _TEXT,
            "precisions": _TEXTS,
            "fallback": {"type": ["string", "null"]},
            "assumed": {**_TEXTS, "description": "Options that were taken because nothing was said."},
            "sparsity": {"enum": ["disable", "enable", "force"]},
            "sparse_layers": {**_TEXTS, "description": "Layers whose zeros were taken to be skipped."},
            "note": {**_TEXT, "description": "That every figure is an estimate."},
            "devices": {**_TEXTS, "description": "Those that layers run on."},
            "batch": {**_COUNT, "description": "Images of one run: the first extent of the first input."},
            "layers": _list(_STEP, "Steps of the segments, in execution order."),
            "segments": _list(_SEGMENT, "In execution order."),
            "transfers": _list(_TRANSFER, "Copies between devices."),
            "network": _NETWORK,
        }
    ),
}


def schema_text() -> str:
    """The schema as the text of a file."""
    return json.dumps(SCHEMA, indent=2)
