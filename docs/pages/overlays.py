"""The page of overlays: the fields of their files, and each limit and parameter that one can change."""

from __future__ import annotations

from typing import Any

from dryfit.plugins.plugin_registry import PluginRegistry
from dryfit.target.overlays import SCHEMA, limit_text, numbers
from dryfit.target.target import Target

_HEAD = """# Overlays

An overlay says what one board with one TensorRT version showed: rules that it does not have, limits that it sets
elsewhere, rules that it was seen to obey, and parameters of the cost model that were fitted to its times. It is a TOML
file of at most 1 MiB. Nothing in it runs. `dryfit board learn` writes it from [results of a
kit](../how-to/to-the-board-and-back.md), people can write it by hand, and `--overlay` [applies
it](../how-to/correct-with-overlays.md). [Its schema](overlay.schema.json) is that of the parsed file.

```toml
schema = 1
name = "my-board"
platform = "orin-nx-16"
software = "10.3"
author = "Ada, Acme Robotics"
made = 2026-11-23
source = "61 layers and 40 times on a developer kit, 15W"

[rules."dla.pooling.ranges"]
enabled = false
layers = 3

[rules."dla.convolution.kernel"]
limits = { high = 31 }
layers = 4
reason = "31 ran on the device, 32 was refused"

[cost.dla]
bytes_per_second = { value = 41.2e9, error = 0.04, measurements = 40 }
"rates.FP16.macs_per_cycle" = { value = 171, error = 0.02, measurements = 40 }

[confirmed]
"dla.convolution.stride" = { layers = 12 }
```

| field | what it says |
|---|---|
| `schema` | version of the form, 1. A file with another one is refused. Required |
| `name` | shown wherever the overlay is active. Required |
| `platform` | the board: the overlay holds for no other one. Required |
| `software` | TensorRT version; without it, the overlay holds for all. `10.3` is also 10.3.0 |
| `author`, `made`, `source` | who made it, when (a date), and of what; changed rules cite the source |
| `rules` | by rule id: `enabled = false`, or new `limits` by name; `layers` that show it, and the `reason` |
| `cost` | by device: parameters of its cost model: `value`, relative standard `error`, number of `measurements` |
| `confirmed` | by rule id: number of `layers` that were refused for it alone; its fidelity becomes *confirmed* |

What an overlay names must exist: a rule, limit or parameter that does not is an error with the closest name, and so is
a value of another type. Two active overlays that say different things of one rule or parameter are an error that names
both, with their sources. Rules that follow from other declarations (`dla.layer.kind`, `dla.precision`) cannot be
changed.

Generated pages and `dryfit explain-rule` show the documented rules; `dryfit targets show DLA --overlay my-board.toml`
shows those of the board.
"""

_LIMITS_HEAD = """
## Limits of {device}

As documented. Rules that are not listed have no limit to move; each of them can be switched off.

| rule | limits |
|---|---|
"""

_PARAMETERS_HEAD = """
## Cost parameters of {device}

Values of `{platform}`. {model} `dryfit board learn` fits those with *yes* if the measured times depend on them, and
sets the stated errors of the model. Of two parameters that only act together, such as two overheads of a step in one
power mode, each has a large error though their sum is known.

| parameter | value | fitted |
|---|---|---|
"""

_MODELS = {
    "DLA": "[The model](dla-cost-model.md) explains them.",
    "GPU": "As documented, they are published peaks, and the estimate is a lower bound (an error factor of 0 is none). "
    "With fitted parameters it is an estimate with their error.",
}

_FIELD = {"type": "string", "minLength": 1}
_COUNT = {"type": "integer", "minimum": 0}


def overlays_page() -> str:
    """The page, in Markdown; of the targets that come with dryfit."""
    targets = [one for one in PluginRegistry(disabled="*").targets().values() if one.limits is not None]
    return _HEAD + "".join(map(_limits, targets)) + "".join(map(_parameters, targets))


def _limits(target: Target) -> str:
    table = target.limits
    rows = [
        f"| `{one.id}` | {', '.join(f'`{name} = {limit_text(value)}`' for name, value in one.limits.items())} |\n"
        for one in (() if table is None else table.rules)
        if one.limits
    ]
    if not rows:
        return ""
    return _LIMITS_HEAD.format(device=target.device) + "".join(rows)


def _parameters(target: Target) -> str:
    if not target.cost_parameters:
        return ""
    first = next(one.name for one in target.platforms if one.name in target.cost_parameters)
    record = target.cost_parameters[first]
    learnable = getattr(type(record), "LEARNABLE", ())
    rows = [
        f"| `{name}` | {value:g} | {'yes' if name in learnable else 'no'} |\n"
        for name, value in numbers(record).items()
    ]
    model = _MODELS.get(target.device, "")
    return _PARAMETERS_HEAD.format(device=target.device, platform=first, model=model) + "".join(rows)


def overlay_schema() -> dict[str, Any]:
    """The JSON Schema of an overlay's file, after TOML was parsed."""
    limit = {"type": ["number", "string", "boolean"]}
    rule = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "enabled": {"type": "boolean"},
            "limits": {
                "type": "object",
                "additionalProperties": {"anyOf": [limit, {"type": "array", "items": limit, "minItems": 1}]},
            },
            "layers": _COUNT,
            "reason": {"type": "string"},
        },
        "anyOf": [{"required": ["limits"]}, {"required": ["enabled"]}],
    }
    parameter = {
        "type": "object",
        "additionalProperties": False,
        "required": ["value"],
        "properties": {
            "value": {"type": "number", "minimum": 0},
            "error": {"type": "number", "minimum": 0},
            "measurements": _COUNT,
        },
    }
    confirmed = {"type": "object", "additionalProperties": False, "properties": {"layers": _COUNT}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "dryfit overlay",
        "type": "object",
        "additionalProperties": False,
        "required": ["schema", "name", "platform"],
        "properties": {
            "schema": {"const": SCHEMA},
            "name": _FIELD,
            "platform": _FIELD,
            "software": {"type": "string", "pattern": r"^(\d+(\.\d+)*)?$"},
            "author": {"type": "string"},
            "made": {"description": "a date"},
            "source": {"type": "string"},
            "rules": {"type": "object", "additionalProperties": rule},
            "cost": {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": parameter}},
            "confirmed": {"type": "object", "additionalProperties": confirmed},
        },
    }
