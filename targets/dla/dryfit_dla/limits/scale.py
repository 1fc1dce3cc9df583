"""Scale on the DLA."""

from __future__ import annotations

from typing import Any

from dryfit.target.checks import at_least, check, each, one_of, parameter
from dryfit.target.limits import Finding, Question, rule, rules
from dryfit_dla import quantities
from dryfit_dla.limits.documents import FALL_BACK, LAYERS, RESHAPE
from dryfit_dla.quantities import (
    input_shape,
)

_SCALE = f"{LAYERS}: Scale layer"


@check("power")
def power_is_one(question: Question) -> Finding | None:
    """The power is 1 everywhere."""
    layer: Any = question.layer
    power = layer.power
    if power is None or not power.size or bool((power == 1).all()):
        return None
    return Finding(f"{power.min():g} to {power.max():g}", "1")


@check("channel axis")
def channel_axis_is_c(question: Question) -> Finding | None:
    """The channel axis is C, the third axis from the last."""
    layer: Any = question.layer
    rank = len(input_shape(question))
    return None if layer.channel_axis == rank - 3 else Finding(f"{layer.channel_axis} of rank {rank}", f"{rank - 3}")


SCALE = rules(
    "scale",
    rule("scale.mode", parameter("mode", one_of("UNIFORM", "CHANNEL", "ELEMENTWISE")), source=_SCALE, remedy=FALL_BACK),
    rule(
        "scale.power",
        power_is_one,
        source=_SCALE,
        remedy="Write small whole powers as elementwise products",
    ),
    rule(
        "scale.channel_axis",
        channel_axis_is_c,
        when=parameter("mode", one_of("CHANNEL", "ELEMENTWISE")),
        source=f"{_SCALE}: per-channel scales are along C",
        fidelity="inferred",
        remedy="Transpose before and after, or use elementwise layers",
    ),
    rule("scale.rank", each(quantities.ranks, at_least(4)), source=_SCALE, remedy=RESHAPE),
)
