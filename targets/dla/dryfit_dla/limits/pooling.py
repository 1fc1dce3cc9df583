"""Pooling and reduce layers on the DLA; the only supported reduction is the maximum over C, H and W."""

from __future__ import annotations

from typing import Any

from dryfit.target.checks import between, check, each, equals, one_of, parameter, platform_is, software_is_at_least
from dryfit.target.limits import Finding, Question, rule, rules
from dryfit_dla import quantities
from dryfit_dla.limits import int8
from dryfit_dla.limits.documents import FALL_BACK, HEADERS, INT8, LAYERS, OPERATORS, REPORTS, RESHAPE
from dryfit_dla.quantities import (
    input_shape,
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
        remedy="Pool in two steps with smaller windows",
    ),
    rule("pooling.padding", each(quantities.paddings, between(0, 7)), source=_POOLING, remedy=FALL_BACK),
    rule("pooling.stride", each("stride_nd", between(1, 16)), source=_POOLING, remedy=FALL_BACK),
    rule(
        "pooling.count_includes_padding",
        parameter("average_count_excludes_padding", equals(False)),
        when=(parameter("pooling_type", equals("AVERAGE")), is_padded),
        families="xavier",
        source=f"{HEADERS} of 7.1 and 8.4, IPoolingLayer: Orin supports both, Xavier only inclusive padding",
        remedy="Set average_count_excludes_padding to False, or pad with a separate layer",
    ),
    rule(
        "pooling.dilation",
        each("dilation_nd", equals(1)),
        source="TensorRT IPoolingLayer has no dilation",
        remedy=FALL_BACK,
    ),
    rule(
        "pooling.indices",
        parameter("returns_indices", equals(False)),
        source="TensorRT IPoolingLayer has no indices output",
        remedy=FALL_BACK,
    ),
    rule(
        "pooling.ranges",
        int8.all_are_equal,
        source=_POOLING,
        precisions=INT8,
        remedy="Set the same dynamic range on the input and the output",
    ),
)


_REDUCE = f"{LAYERS}: Reduce layer"
_CAME = f"{OPERATORS}: the maximum was added in TensorRT 8.6.12, for Orin"


@check("axes")
def axes_are_no_batch(question: Question) -> Finding | None:
    """The reduced axes must be among C, H and W."""
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
            "Replace an average over H and W with average poolings of at most 8x8 (`dryfit explain "
            "--apply average-pool-cascade`); for a sum, multiply that average by the extents, or use a 1x1 convolution "
            "over C"
        ),
    ),
    rule("reduce.platform", platform_is("orin"), source=_CAME, remedy=FALL_BACK),
    rule(
        "reduce.software",
        software_is_at_least("8.6.12"),
        families="orin",
        source=_CAME,
        remedy="Use software 8.6.12 or newer, or use max pooling in steps with windows of at most 8x8",
    ),
    rule("reduce.rank", each(quantities.input_rank, equals(4)), source=_REDUCE, remedy=RESHAPE),
    rule("reduce.axes", axes_are_no_batch, source=_REDUCE, remedy=FALL_BACK),
    rule(
        "reduce.keep_dims",
        parameter("keep_dims", equals(True)),
        source=f"{REPORTS}: lower-rank tensors are reshaped by a layer that the DLA does not support",
        fidelity="inferred",
        remedy="Set keep_dims, and reshape after the layer",
    ),
)
