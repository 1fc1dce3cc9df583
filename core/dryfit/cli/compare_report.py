"""What `dryfit compare` tells, as plain data: the JSON that `--json` prints."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs

from dryfit.answers.json_data import plain
from dryfit.answers.placement import placement_of
from dryfit.cli.arithmetic_report import plan_arithmetic
from dryfit.cli.overflow_report import overflow_data

if TYPE_CHECKING:
    from dryfit.answers.comparison.compare import ComparedTensor, Comparison
    from dryfit.answers.comparison.sides import Side
    from dryfit.answers.comparison.stored_network import StoredNetwork
    from dryfit.answers.comparison.tensor_difference import Difference, ElementDifference
    from dryfit.engine.plan import Plan

Report = dict[str, Any]

RANKED = 5
"""How many of the layers that add most error the summary names. Our choice."""


def comparison_report(model: str, plan: Plan, known: StoredNetwork, sides: Sequence[Side], found: Comparison) -> Report:
    """The report.

    Args:
        model: the file.
        plan: of the engine.
        known: the network that the sides compute.
        sides: what it was compared with.
        found: what differs.
    """
    placed = plain(placement_of(model, plan, plan.settings))
    shared = ("model", "device", "platform", "software", "precisions", "fallback", "simulated", "plugins")
    return {
        **{key: placed[key] for key in shared},
        "arithmetic": plan_arithmetic(plan),
        "weights": known.weights,
        "weights_rounded": list(known.rounded),
        "weights_unknown": [{"layer": layer, "reason": reason} for layer, reason in known.unknown.items()],
        "samples": list(found.samples),
        "sides": [_side(side, found) for side in sides],
        "tensors": [_tensor(one, plan) for one in found.tensors],
        "left_out": list(found.left_out),
    }


def falls_below(report: Report, least: float | None) -> list[dict[str, Any]]:
    """The answer to --fail-below for each output and side, as `conditions` of other commands are."""
    if least is None:
        return []
    return [
        {
            "condition": f"{tensor['tensor']} against {side}: at least {least:g} dB",
            "actual": "not known" if one is None else ratio_text(one),
            "failed": one is None or _is_below(one, least),
        }
        for tensor in report["tensors"]
        if tensor["is_output"]
        for side, one in tensor["differences"].items()
    ]


def _is_below(one: dict[str, Any], least: float) -> bool:
    if one["not_finite_differing"]:
        return True  # no ratio says how far NaN or infinity is from a number
    return bool(one["error"] > 0 and (one["sqnr_db"] is None or one["sqnr_db"] < least))


def ratio_text(one: dict[str, Any]) -> str:
    """The ratio of a tensor for people, and the elements that it leaves out because they are not finite."""
    unlike = one["not_finite_differing"]
    alike = one["not_finite"] - unlike
    words = []
    if one["not_finite"] < one["elements"] or not one["elements"]:
        words.append(decibels_text(one["sqnr_db"], is_equal=one["error"] == 0 and not unlike))
    if unlike:
        words.append(f"{unlike} not finite differ")
    if alike:
        words.append(f"{alike} not finite alike")
    return ", ".join(words)


def decibels_text(decibels: float | None, *, is_equal: bool) -> str:
    """A ratio for people: `equal` where there is no noise, `no signal` where there is nothing else."""
    if is_equal:
        return "equal"
    return "no signal" if decibels is None else f"{decibels:.1f}"


def _side(side: Side, found: Comparison) -> dict[str, Any]:
    first = found.first_error(side.name)
    plan = side.plan
    return {
        "name": side.name,
        "arithmetic": [] if plan is None else plan_arithmetic(plan),
        "compared": sum(one.differences[side.name] is not None for one in found.tensors),
        "differing": sum(one.differences[side.name] is not None and _differs(one, side.name) for one in found.tensors),
        "first_error": None if first is None else first.stored_as,
        "overflows": overflow_data(found, side.name),
        "largest_errors": [one.stored_as for one in found.largest_errors(side.name)[:RANKED]],
    }


def _differs(one: ComparedTensor, side: str) -> bool:
    difference = one.differences[side]
    return difference is not None and difference.differing > 0


def _tensor(one: ComparedTensor, plan: Plan) -> dict[str, Any]:
    outputs = {tensor.name for tensor in plan.network.outputs}
    return {
        "tensor": one.tensor,
        "stored_as": one.stored_as,
        "is_output": one.stored_as in outputs,
        "is_conversion": one.is_conversion,
        "type": one.dtype.name,
        "engine_layer": one.operation.name,
        "layers": list(one.operation.source_layers),
        "device": one.operation.device,
        "kernel": one.operation.kernel,
        "saturation": one.saturation,
        "differences": {
            side: None if found is None else difference_data(found) for side, found in one.differences.items()
        },
        "unfed": {side: list(lacking) for side, lacking in one.unfed.items()},
    }


def difference_data(found: Difference) -> dict[str, Any]:
    """How far a tensor is from another, as plain data."""
    count = max(1, found.elements - found.not_finite)
    return {
        "elements": found.elements,
        "differing": found.differing,
        "not_finite": found.not_finite,
        "not_finite_differing": found.not_finite_differing,
        "own_not_finite": found.own_not_finite,
        "inherited_not_finite": found.inherited_not_finite,
        "signal": _root(found.signal, count),
        "error": _root(found.error, count),
        "own_error": _root(found.own, count),
        "inherited_error": _root(found.inherited, count),
        "sqnr_db": _finite(found.sqnr_db),
        "own_sqnr_db": _finite(found.own_sqnr_db),
        "inherited_sqnr_db": _finite(found.inherited_sqnr_db),
        "first": _element(found.first),
        "largest": _element(found.largest),
    }


def _root(power: float | None, count: int) -> float | None:
    """Root of the mean square."""
    return None if power is None else math.sqrt(power / count)


def _finite(number: float | None) -> float | None:
    """A number, or None where JSON has none for it."""
    return number if number is not None and math.isfinite(number) else None


def _element(one: ElementDifference | None) -> dict[str, Any] | None:
    if one is None:
        return None
    facts = attrs.asdict(one)
    numbers = {
        key: value if math.isfinite(value) else str(value) for key, value in facts.items() if key in ("value", "other")
    }
    return {**facts, "index": list(one.index), **numbers}
