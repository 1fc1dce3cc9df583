"""Parametric ReLU on the DLA. That the slopes have the input's rank is part of what the layer is."""

from __future__ import annotations

from dryfit.target.checks import at_least, check, each, software_is_at_least
from dryfit.target.limits import Finding, Question, rule, rules
from dryfit_dla import quantities
from dryfit_dla.limits.documents import FALL_BACK, HEADERS, LAYERS, RESHAPE

_PARAMETRIC_RELU = f"{LAYERS}: Parametric ReLU layer"


@check("slopes")
def slopes_are_constant(question: Question) -> Finding | None:
    """The slopes are a constant, known when the network is built."""
    slopes = question.inputs[1]
    return None if question.is_constant(slopes) else Finding(f"computed: {slopes.name!r}", "a constant")


PARAMETRIC_RELU = rules(
    "parametric_relu",
    rule(
        "parametric_relu.software",
        software_is_at_least("8.4"),
        source=f"{HEADERS} of 8.4, IParametricReLULayer",
        remedy="Use software 8.4 or newer",
    ),
    rule("parametric_relu.slopes", slopes_are_constant, source=_PARAMETRIC_RELU, remedy=FALL_BACK),
    rule(
        "parametric_relu.rank",
        each(quantities.ranks, at_least(4)),
        source=f"{LAYERS}: Activation layer, two spatial dimensions only",
        fidelity="inferred",
        remedy=RESHAPE,
    ),
)
