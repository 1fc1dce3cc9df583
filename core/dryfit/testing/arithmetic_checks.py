"""Checks that a target declares its arithmetic and its fidelity for each precision."""

from __future__ import annotations

import numpy as np

from dryfit.errors import PluginError
from dryfit.network.data_types import DataType
from dryfit.quantization.rounding import Rounding, RoundingFunction
from dryfit.rule import FIDELITIES
from dryfit.target.arithmetic import Arithmetic
from dryfit.target.target import Target

PLACES = ("group", "layer")
"""Where results may be rounded."""


def arithmetic_problems(precision: DataType, target: Target) -> list[str]:
    """Return what the arithmetic of a precision lacks."""
    arithmetic = target.arithmetic.get(precision)
    if arithmetic is None:
        return [f"{precision.text}: the target computes in it, but does not declare its arithmetic"]
    found = []
    if arithmetic.precision is not precision:
        found.append(f"what is listed for it is that of {arithmetic.precision.text}")
    if arithmetic.accumulator.bits < precision.bits:
        found.append(f"its accumulator {arithmetic.accumulator.text} is narrower")
    if arithmetic.rounds not in PLACES:
        found.append(f"`rounds` is {arithmetic.rounds!r}, not one of {', '.join(PLACES)}")
    found += [problem for one in arithmetic.roundings for problem in rounding_problems(one)]
    if arithmetic.fidelity not in FIDELITIES:
        found.append(f"the fidelity {arithmetic.fidelity!r} is not one of {', '.join(FIDELITIES)}")
    if not arithmetic.source.strip():
        found.append("`source` is empty")
    found += _approximation_problems(arithmetic, target)
    newest = target.software_versions[-1] if target.software_versions else ()
    if arithmetic.rounding_since and arithmetic.rounding_for(newest) is not arithmetic.rounding:
        found.append(f"`rounding` is {arithmetic.rounding}, and the newest version's {arithmetic.rounding_for(newest)}")
    return [f"{precision.text}: {problem}" for problem in found]


def rounding_problems(rounding: Rounding) -> list[str]:
    """Return values that a function does not round to an adjacent whole number, or whole numbers it changes."""
    if not isinstance(rounding, RoundingFunction):
        return []
    values = np.arange(-1024, 1025, dtype=np.float32) / np.float32(8)
    try:
        whole = rounding(values)
    except PluginError as error:
        return [str(error)]
    wrong = values[(np.abs(whole - values) >= 1) | ((values == np.rint(values)) & (whole != values))]
    return (
        [f"the rounding {rounding.name} takes {wrong[0]} to {float(whole[values == wrong[0]][0])}"]
        if wrong.size
        else []
    )


def _approximation_problems(arithmetic: Arithmetic, target: Target) -> list[str]:
    """What the approximations of an arithmetic lack."""
    own = {kernel.name for kernel in target.kernels}
    found = []
    for one in arithmetic.approximations:
        if one.kernel not in own:
            found.append(f"the kernel {one.kernel!r} of an approximation is none of the target's")
        if one.fidelity not in FIDELITIES:
            found.append(f"the fidelity {one.fidelity!r} of {one.kernel} is not one of {', '.join(FIDELITIES)}")
        found += [f"`{field}` of {one.kernel} is empty" for field in ("text", "source") if not getattr(one, field)]
    return found


def superfluous_arithmetic(target: Target) -> list[str]:
    """Return the arithmetic of types in which the target does not compute.

    INT8 is never included: explicitly quantized layers are computed in INT8, whatever the builder config requests.
    """
    permitted = {*target.precisions, DataType.INT8}
    return [f"{one.name}: the target does not compute in it" for one in target.arithmetic if one not in permitted]
