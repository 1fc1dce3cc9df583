"""Reduce on the DLA: the maximum over C, H and W."""

from __future__ import annotations

from typing import Any

from dryfit.target.checks import check, each, equals, one_of, parameter, platform_is, software_is_at_least
from dryfit.target.limits import Finding, Question, rule, rules
from dryfit_dla import quantities
from dryfit_dla.limits.documents import FALL_BACK, LAYERS, OPERATORS, REPORTS, RESHAPE
from dryfit_dla.quantities import input_shape

_REDUCE = f"{LAYERS}: Reduce layer"
_CAME = f"{OPERATORS}: the maximum came with TensorRT 8.6.12, for Orin"


@check("axes")
def axes_are_no_batch(question: Question) -> Finding | None:
    """The reduced axes are among C, H and W."""
    layer: Any = question.layer
    rank = len(input_shape(question))
    axes = [axis for axis in range(rank) if layer.axes >> axis & 1]
    if min(axes, default=0) >= rank - 3:
        return None
    return Finding(f"{', '.join(map(str, axes))} of rank {rank}", f"{max(rank - 3, 0)} to {rank - 1}")


REDUCE = rules(
    "reduce",
    rule(
        "reduce.operation",
        parameter("op", one_of("MAX")),
        source=_REDUCE,
        remedy=(
            "Replace an average over H and W by average poolings with windows of at most 8x8 (`dryfit explain --apply "
            "average-pool-cascade`); a sum is such an average times their extents, or a 1x1 convolution over C"
        ),
    ),
    rule("reduce.platform", platform_is("orin"), source=_CAME, remedy=FALL_BACK),
    rule(
        "reduce.software",
        software_is_at_least("8.6.12"),
        families="orin",
        source=_CAME,
        remedy="Use software 8.6.12 or newer, or pool the maximum in steps of windows of at most 8x8",
    ),
    rule("reduce.rank", each(quantities.input_rank, equals(4)), source=_REDUCE, remedy=RESHAPE),
    rule("reduce.axes", axes_are_no_batch, source=_REDUCE, remedy=FALL_BACK),
    rule(
        "reduce.keep_dims",
        parameter("keep_dims", equals(True)),
        source=f"{REPORTS}: a tensor of lower rank is reshaped by a layer that the DLA does not have",
        fidelity="inferred",
        remedy="Set keep_dims, and reshape behind the layer",
    ),
)
