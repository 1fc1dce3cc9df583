"""The JSON Schema of what `dryfit explain --json` prints; published in docs as `explain.schema.json`."""

from __future__ import annotations

import json
from typing import Any

from dryfit.cli.arithmetic_report import ARITHMETIC_SCHEMA
from dryfit.cli.check_schema import ESTIMATE
from dryfit.cli.check_schema import SCHEMA as CHECK_SCHEMA
from dryfit.cli.operator_rules_report import LEFT_SCHEMA, OPERATORS_SCHEMA

_TEXT: dict[str, Any] = {"type": "string"}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_SHARE: dict[str, Any] = {"type": "number", "minimum": 0, "maximum": 1}

_CHECKED_LAYER = CHECK_SCHEMA["properties"]["layers"]["items"]["properties"]
_VERDICT = _CHECKED_LAYER["verdicts"]["additionalProperties"]["properties"]


def _object(properties: dict[str, Any], description: str = "") -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": list(properties)}
    return {"description": description, **schema} if description else schema


def _list(items: dict[str, Any], description: str) -> dict[str, Any]:
    return {"description": description, "type": "array", "items": items}


def _cost(description: str, least: int | None) -> dict[str, Any]:
    number = {"type": "integer"} if least is None else {"type": "integer", "minimum": least}
    return _object(
        {
            "refused_layers": {**number, "description": "Layers that leave the device."},
            "loadables": {**number, "description": "Segments on the device."},
            "border_bytes": {**number, "type": ["integer", "null"], "description": "Null where it is not known."},
            "macs_off_device": {**number, "description": "Multiply-accumulates of the layers that leave."},
        },
        description,
    )


_LAYER = _object(
    {
        **{
            key: _CHECKED_LAYER[key]
            for key in ("name", "kind", "onnx_nodes", "device", "segment", "precision", "cause")
        },
        "macs": {**_COUNT, "description": "Multiply-accumulates of one run; dynamic extents count as 1."},
        "supported": {"type": ["boolean", "null"], "description": "Null for what no device was asked about."},
        "violations": _VERDICT["violations"],
        "warnings": _VERDICT["warnings"],
        "notes": {**_VERDICT["warnings"], "description": "What the device does with the layer that was not asked for."},
    }
)

_CAUSE = _object(
    {
        "rule": _TEXT,
        "remedy": _TEXT,
        "source": _TEXT,
        "fidelity": _TEXT,
        "layers": {**_TEXTS, "description": "The layers that fail the rule, each once."},
        "macs": _COUNT,
        "macs_share": _SHARE,
        "edits": {**_TEXTS, "description": "Ids of the edits that may cure it, whether or not they can be made here."},
    }
)

_EDIT = _object(
    {
        "apply": {**_TEXT, "description": "What `--apply` takes."},
        "title": _TEXT,
        "changes": {**_TEXTS, "description": "What becomes of what, and when it cannot be done; one an edit."},
        "source": _TEXTS,
        "nodes": {**_TEXTS, "description": "The ONNX nodes that are rewritten."},
        "before": _cost("The model as it is.", 0),
        "after": _cost("The edited model.", 0),
        "saved": _cost("The difference; negative where it costs more.", None),
    }
)

_COPIES = {"reformats": _COUNT, "reformat_bytes": _COUNT}

_REMOVED_BY = _object(
    {
        "io_format": {**_TEXT, "description": "Type and format of the tensor, as --input-io-formats takes them."},
        **_COPIES,
        "moved_bytes": {**_COUNT, "description": "Those of the copies, and those that devices convert inside."},
    },
    "The type and format of the input or output that was tried and does without the copy; of the whole network then.",
)

_REFORMAT = _object(
    {
        **CHECK_SCHEMA["properties"]["reformats"]["items"]["properties"],
        "remedy": _TEXT,
        "source": _TEXT,
        "removed_by": {"anyOf": [_REMOVED_BY, {"type": "null"}]},
    }
)

_IO_FORMATS = _object(
    {
        "apply": {**_TEXT, "description": "The options that set them."},
        "before": _object(_COPIES),
        "after": _object(_COPIES),
    }
)

_SUMMARY = _object(
    {
        "layers": _COUNT,
        "layers_leaving": _COUNT,
        "macs": _COUNT,
        "macs_leaving": _COUNT,
        "macs_leaving_share": _SHARE,
        "loadables": _COUNT,
        "border_bytes": {"type": ["integer", "null"], "minimum": 0},
    }
)

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "dryfit explain --json",
    **_object(
        {
            **{
                key: CHECK_SCHEMA["properties"][key]
                for key in (
                    "model",
                    "device",
                    "platform",
                    "software",
                    "precisions",
                    "fallback",
                    "simulated",
                    "plugins",
                )
            },
            "assumed": {**_TEXTS, "description": "Options that were taken because nothing was said."},
            "layer": {"type": ["string", "null"], "description": "The layer that was asked about; null for all."},
            "layers": _list(_LAYER, "In the order of the network."),
            "causes": _list(_CAUSE, "Failed rules, that of the most multiply-accumulates first."),
            "estimates": _list(
                _object({"segment": _COUNT, "device": _TEXT, **ESTIMATE["properties"]}),
                "What each segment is estimated to cost, for devices whose targets estimate it; never measured.",
            ),
            "arithmetic": ARITHMETIC_SCHEMA,
            "quantized_operators": OPERATORS_SCHEMA,
            "left": LEFT_SCHEMA,
            "reformats": _list(_REFORMAT, "Copies between types, formats or devices, at the layers that are told of."),
            "io_formats": {
                "anyOf": [_IO_FORMATS, {"type": "null"}],
                "description": "What all formats that remove a reformat do together; null where none does, or none was "
                "looked for.",
            },
            "dynamic_inputs": {**_TEXTS, "description": "Inputs with extents that are not fixed."},
            "summary": _SUMMARY,
            "edits": _list(_EDIT, "Edits that pay, each measured alone, the largest saving first."),
            "together": {
                "anyOf": [_EDIT, {"type": "null"}],
                "description": "All that pay at once; null for one or none.",
            },
            "unmeasured_edits": _list(_object({"id": _TEXT, "reason": _TEXT}), "Edits that could not be measured."),
        }
    ),
}


def schema_text() -> str:
    """The schema as the text of a file."""
    return json.dumps(SCHEMA, indent=2)
