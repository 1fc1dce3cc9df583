"""What `dryfit compare --methods` tells, as plain data: the JSON that `--json` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dryfit.cli.compare_report import difference_data

if TYPE_CHECKING:
    from dryfit.answers.comparison.compare_methods import (
        CodeDifference,
        ComparedCodes,
        ComparedOutput,
        MethodComparison,
    )
    from dryfit.answers.comparison.method_sides import MethodSide
    from dryfit.answers.comparison.tensor_difference import Difference

Report = dict[str, Any]


def methods_report(model: str, sides: Sequence[MethodSide], found: MethodComparison) -> Report:
    """The report.

    Args:
        model: the file.
        sides: what was compared; the others with the first.
        found: what differs.
    """
    from dryfit.plugins import registry

    first = sides[0].name
    return {
        "model": model,
        "device": registry.host().device,
        "plugins": registry.active_plugins(),
        "samples": list(found.samples),
        "methods": [_method(side, found, is_first=side.name == first) for side in sides],
        "layers": [_layer(one) for one in found.codes],
        "outputs": [_output(one) for one in found.outputs],
    }


def _method(side: MethodSide, found: MethodComparison, *, is_first: bool) -> dict[str, Any]:
    known = [] if is_first else [one for one in found.codes if one.differences[side.name] is not None]
    parting = None if is_first else found.first_parting(side.name)
    return {
        "name": side.name,
        "title": side.method.title,
        "library": side.method.library,
        "version": side.method.version,
        "operators": len({rule.layer for rule in side.operators.values()}),
        "left": [{"layer": one.layer, "reason": one.reason} for one in side.left],
        "compared": len(known),
        "differing": sum(_differs(one, side.name) for one in known),
        "first_parting": None if parting is None else parting.tensor,
    }


def _differs(one: ComparedCodes, method: str) -> bool:
    difference = one.differences[method]
    return difference is not None and difference.whole.differing > 0


def _layer(one: ComparedCodes) -> dict[str, Any]:
    return {
        "layer": one.layer,
        "operator": one.operator,
        "tensor": one.tensor,
        "type": one.dtype.name,
        "formulas": {method: rule.formula for method, rule in one.rules.items()},
        "differences": {
            method: None if difference is None else _difference(difference)
            for method, difference in one.differences.items()
        },
    }


def _difference(one: CodeDifference) -> dict[str, Any]:
    return {
        "elements": one.whole.elements,
        "differing": one.whole.differing,
        "largest": _largest(one.whole),
        "own_differing": None if one.own is None else one.own.differing,
        "own_largest": None if one.own is None else _largest(one.own),
    }


def _largest(one: Difference) -> int:
    """In codes."""
    return 0 if one.largest is None else int(abs(one.largest.value - one.largest.other))


def _output(one: ComparedOutput) -> dict[str, Any]:
    top = None
    if one.decisions is not None:
        top = {method: {"decisions": one.decisions, "changed": changed} for method, changed in one.changed.items()}
    return {
        "tensor": one.tensor,
        "differences": {method: difference_data(found) for method, found in one.differences.items()},
        "top_1": top,
    }
