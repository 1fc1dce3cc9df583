"""Where quantize and dequantize layers went, as plain data and in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dryfit.network.data_types import DataType
from dryfit.network.layers.quantization import Quantize
from dryfit.short_text import short_name, with_short_names

if TYPE_CHECKING:
    from dryfit.answers.quantization_trace import TracedQuantization
    from dryfit.network.layers.quantization import Dequantize
    from dryfit.quantization.rewrites import Rewrite

JOINT = {"folded": "into", "merged": "into", "cancelled": "with", "claimed": "by"}
"""What stands between an outcome and the names that it speaks of."""

LISTED = 3
"""So many names are told in words; the others are in the JSON."""


def traced_data(traced: TracedQuantization) -> dict[str, Any]:
    """One layer and where it went, as plain data."""
    layer = traced.layer
    is_quantize = isinstance(layer, Quantize)
    real = layer.inputs[0] if is_quantize else layer.outputs[0]
    narrow = layer.outputs[0] if is_quantize else layer.inputs[0]
    scale = None if layer.inputs[1] is None else layer.inputs[1].spec.value
    return {
        "name": layer.name,
        "kind": layer.kind,
        "onnx_nodes": list(layer.onnx_nodes),
        "tensor": None if real is None else real.name,
        "type": None if narrow is None else narrow.dtype.name,
        "scale": float(scale.reshape(-1)[0]) if scale is not None and scale.size == 1 else None,
        "granularity": granularity(layer),
        "outcome": traced.outcome.value,
        "steps": list(traced.steps),
        "part": traced.part,
        "reason": traced.reason,
        "rewrites": [_rewrite(step) for step in traced.rewrites],
    }


def _rewrite(step: Rewrite) -> dict[str, Any]:
    return {
        "pass": step.pass_name,
        "action": step.action.value,
        "over": list(step.over),
        "reason": step.reason,
        "compared_scales": list(step.compared_scales),
    }


def granularity(layer: Quantize | Dequantize) -> str:
    """What shares a scale: `per tensor`, `64 along axis 0`, `blocks of 1x32`."""
    scale = layer.inputs[1]
    size = 1 if scale is None else abs(math.prod(scale.shape))
    if layer.block_shape:
        return f"blocks of {'x'.join(map(str, layer.block_shape))}"
    if scale is not None and len(scale.shape) > 1 and size > 1:
        return f"{'x'.join(map(str, scale.shape))} blocks"
    return f"{size} along axis {layer.axis}" if size > 1 else "per tensor"


def path_text(one: Mapping[str, Any]) -> str:
    """Where a layer went in words: what it moved over, and what it is part of, or why it is alone.

    Args:
        one: see `traced_data`.
    """
    moved = [name for step in one["rewrites"] if step["action"] == "moved" for name in step["over"]]
    where = [f"moved over {_names(moved)}"] if moved else []
    if one["outcome"] in JOINT:
        where.append(f"{one['outcome']} {JOINT[one['outcome']]} {_names(one['steps'])}")
    elif one["steps"]:
        where.append(f"{one['part']} of {_names(one['steps'])}")
    if one["outcome"] != "fused":
        where.append(with_short_names(f"{one['reason'][:1].lower()}{one['reason'][1:]}"))
    return "; ".join(where)


def _names(names: list[str]) -> str:
    unique = list(dict.fromkeys(names))
    rest = f" and {len(unique) - LISTED} more" if len(unique) > LISTED else ""
    return ", ".join(map(short_name, unique[:LISTED])) + rest


def integer_share(macs_by_type: Mapping[str, int]) -> float:
    """The share of multiply-accumulates whose operands are all integers; 0 where there are none.

    Args:
        macs_by_type: see `dryfit.answers.quantization_trace.QuantizationTrace`.
    """
    total = sum(macs_by_type.values())
    whole = sum(count for name, count in macs_by_type.items() if all(DataType[one].is_integer for one in _types(name)))
    return whole / total if total else 0.0


def _types(name: str) -> list[str]:
    return name.split(" x ")
