"""Pooling on the DLA."""

from __future__ import annotations

from dryfit.target.checks import between, check, each, equals, one_of, parameter
from dryfit.target.limits import Finding, Question, rule, rules
from dryfit_dla import quantities
from dryfit_dla.limits import dynamic_ranges
from dryfit_dla.limits.documents import FALL_BACK, HEADERS, INT8, LAYERS, RESHAPE
from dryfit_dla.quantities import (
    paddings,
)

_POOLING = f"{LAYERS}: Pooling layer"


@check("padding")
def is_padded(question: Question) -> Finding | None:
    """There is padding."""
    return None if any(paddings(question)) else Finding("none", "some")


POOLING = rules(
    "pooling",
    rule("pooling.type", parameter("pooling_type", one_of("MAX", "AVERAGE")), source=_POOLING, remedy=FALL_BACK),
    rule("pooling.spatial_axes", parameter(quantities.window_axes, equals(2)), source=_POOLING, remedy=RESHAPE),
    rule(
        "pooling.window",
        each("window_size_nd", between(1, 8)),
        source=_POOLING,
        remedy="Pool in two steps of smaller windows",
    ),
    rule("pooling.padding", each(quantities.paddings, between(0, 7)), source=_POOLING, remedy=FALL_BACK),
    rule("pooling.stride", each("stride_nd", between(1, 16)), source=_POOLING, remedy=FALL_BACK),
    rule(
        "pooling.count_includes_padding",
        parameter("average_count_excludes_padding", equals(False)),
        when=(parameter("pooling_type", equals("AVERAGE")), is_padded),
        families="xavier",
        source=f"{HEADERS} of 7.1 and 8.4, IPoolingLayer: Orin takes both, Xavier inclusive padding only",
        remedy="Set average_count_excludes_padding to False, or pad with a separate layer",
    ),
    rule(
        "pooling.dilation", each("dilation_nd", equals(1)), source="TensorRT IPoolingLayer has none", remedy=FALL_BACK
    ),
    rule(
        "pooling.indices",
        parameter("returns_indices", equals(False)),
        source="TensorRT IPoolingLayer has none",
        remedy=FALL_BACK,
    ),
    rule(
        "pooling.ranges",
        dynamic_ranges.all_are_equal,
        source=_POOLING,
        precisions=INT8,
        remedy="Give input and output the same range",
    ),
)
