"""The page of overlays: the fields of their files, and each limit and parameter that one can change."""

from __future__ import annotations

from typing import Any

from dryfit.plugins.plugin_registry import PluginRegistry
from dryfit.target.overlays import SCHEMA, limit_text, numbers
from dryfit.target.target import Target

_HEAD = """# Overlays

An overlay records what one board with one TensorRT version showed: rules that do not apply to it, limits with other
values, confirmed rules, and parameters of the cost model that were fitted to its latencies. It is a TOML file of at
most 1 MiB and contains no code. `dryfit board learn` writes it from [the results of a
kit](../how-to/to-the-board-and-back.md), or you write it by hand; `--overlay` [applies
it](../how-to/correct-with-overlays.md). The [schema](overlay.schema.json) describes the parsed file.

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

| field | meaning |
|---|---|
| `schema` | schema version, 1; any other is refused. Required |
| `name` | shown wherever the overlay is active. Required |
| `platform` | the only board that the overlay applies to. Required |
| `software` | TensorRT version; default: all versions. `10.3` is also 10.3.0 |
| `author`, `made`, `source` | who made it, on what date and from what; changed rules cite the source |
| `rules` | by rule id: `enabled = false`, or new `limits` by name; number of `layers` that show it; `reason` |
| `cost` | by device: parameters of its cost model: `value`, relative standard `error`, number of `measurements` |
| `confirmed` | by rule id: number of `layers` refused because of this rule alone; the rule becomes *confirmed* |

Rules, limits and parameters in an overlay must exist; otherwise an error names the closest one. A value of the wrong
type is an error too. If two active overlays contradict each other about a rule or parameter, an error names both and
their sources. Rules derived from other declarations (`dla.layer.kind`, `dla.precision`) cannot be changed.

Generated pages and `dryfit explain-rule` show the documented rules; `dryfit targets show DLA --overlay my-board.toml`
shows the board's rules.
"""

_LIMITS_HEAD = """
## Limits of {device}

The documented limits. Rules that are not listed have no limit to change, but can be disabled.

| rule | limits |
|---|---|
"""

_PARAMETERS_HEAD = """
## Cost parameters of {device}

Values of `{platform}`. {model} `dryfit board learn` fits those marked *yes* if the measured times depend on them, and
sets the stated errors of the model. If two parameters only act together, such as the two overheads of a step in one
power mode, each has a large error although their sum is known.

| parameter | value | fitted |
|---|---|---|
"""

_MODELS = {
    "DLA": "[The model](dla-cost-model.md) explains them.",
    "GPU": "The documented values are published peaks, and the estimate is a lower bound (an error factor of 0 means "
    "that none is stated). With fitted parameters it is an estimate with their error.",
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
