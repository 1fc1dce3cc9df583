"""Concatenation on the DLA."""

from __future__ import annotations

from typing import Any

from dryfit.target.checks import at_least, check, each, parameter
from dryfit.target.limits import Finding, Question, rule, rules
from dryfit_dla import quantities
from dryfit_dla.limits import dynamic_ranges
from dryfit_dla.limits.documents import FALL_BACK, INT8, LAYERS, REPORTS, RESHAPE
from dryfit_dla.quantities import (
    input_shape,
)

_CONCATENATION = f"{LAYERS}: Concatenation layer"


@check("axis")
def joins_channels(question: Question) -> Finding | None:
    """Tensors are joined along C, the third axis from the last."""
    layer: Any = question.layer
    rank = len(input_shape(question))
    return None if layer.axis % rank == rank - 3 else Finding(f"{layer.axis} of rank {rank}", f"{rank - 3}")


@check("shape of the inputs")
def spatial_extents_are_equal(question: Question) -> Finding | None:
    """All inputs have the same H and W."""
    shapes = [question.spec(tensor).shape for tensor in question.inputs]
    return (
        None
        if len({shape[-2:] for shape in shapes}) <= 1
        else Finding(", ".join(map(str, shapes)), "one with equal H and W")
    )


CONCATENATION = rules(
    "concatenation",
    rule("concatenation.axis", joins_channels, source=_CONCATENATION, remedy=FALL_BACK),
    rule(
        "concatenation.inputs",
        parameter(quantities.number_of_inputs, at_least(2)),
        source=_CONCATENATION,
        remedy="Remove the layer: one input is its output",
    ),
    rule(
        "concatenation.spatial",
        spatial_extents_are_equal,
        source=_CONCATENATION,
        remedy="Resize or pad the inputs before",
    ),
    rule(
        "concatenation.rank",
        each(quantities.ranks, at_least(4)),
        source=f"{REPORTS}: a tensor of lower rank is reshaped by a layer that the DLA does not have",
        fidelity="inferred",
        remedy=RESHAPE,
    ),
    rule(
        "concatenation.ranges",
        dynamic_ranges.all_are_equal,
        source=_CONCATENATION,
        precisions=INT8,
        remedy="Give the inputs and the output the largest range of them",
    ),
)
