"""Scale, LRN and softmax layers on the DLA.

Local response normalization is always across channels, the only form that the DLA supports.
"""

from __future__ import annotations

from typing import Any

from dryfit.network.data_types import DataType
from dryfit.target.checks import Quantity, at_least, between, check, each, equals, one_of, parameter, platform_is
from dryfit.target.limits import Finding, Question, rule, rules
from dryfit_dla import quantities
from dryfit_dla.limits.documents import FALL_BACK, GUIDE_8_4, INT8, LAYERS, REPORTS, RESHAPE
from dryfit_dla.limits.int8 import runs_in_fp16
from dryfit_dla.quantities import (
    input_shape,
)

_SCALE = f"{LAYERS}: Scale layer"


@check("power")
def power_is_one(question: Question) -> Finding | None:
    """The power must be 1 everywhere."""
    layer: Any = question.layer
    power = layer.power
    if power is None or not power.size or bool((power == 1).all()):
        return None
    return Finding(f"{power.min():g} to {power.max():g}", "1")


@check("channel axis")
def channel_axis_is_c(question: Question) -> Finding | None:
    """The channel axis must be C, the third axis from the last."""
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
        remedy="Write small integer powers as elementwise products",
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


_LRN = f"{LAYERS}: LRN (Local Response Normalization) layer"

LRN = rules(
    "lrn",
    rule("lrn.window", parameter("window_size", one_of(3, 5, 7, 9)), source=_LRN, remedy=FALL_BACK),
    rule(
        "lrn.rank",
        each(quantities.ranks, equals(4)),
        source=f"{_LRN}: across the channels of images",
        fidelity="inferred",
        remedy=RESHAPE,
    ),
    rule(
        "lrn.int8_promotion",
        runs_in_fp16,
        precisions=INT8,
        source=_LRN,
        severity="note",
        promotes_to=DataType.HALF,
    ),
)


_SOFTMAX = f"{LAYERS}: Softmax layer"


def _softmax_extents(question: Question) -> tuple[int, int, list[int]]:
    """(axis counted from the end, its extent, the other non-batch extents)."""
    layer: Any = question.layer
    shape = input_shape(question)
    axis = layer.axes.bit_length() - 1
    others = [extent for i, extent in enumerate(shape) if i >= len(shape) - 3 and i != axis]
    return axis - len(shape), shape[axis], others


softmax_extent = Quantity("extent of the axis", lambda question: _softmax_extents(question)[1])


@check("axes")
def softmax_axis_is_no_batch(question: Question) -> Finding | None:
    """The axis must be C, H or W."""
    axis, _, _ = _softmax_extents(question)
    rank = len(input_shape(question))
    return None if axis >= -3 else Finding(f"axis {axis + rank} of rank {rank}", f"axis {rank - 3} to {rank - 1}")


@check("extents other than the axis")
def softmax_is_accurate(question: Question) -> Finding | None:
    """The extents of C, H and W other than the axis must be 1 (the DLA's accurate mode)."""
    _, _, others = _softmax_extents(question)
    return None if all(extent == 1 for extent in others) else Finding(", ".join(map(str, others)), "1")


@check("extents other than the axis")
def softmax_is_optimized(question: Question) -> Finding | None:
    """An extent of C, H or W other than the axis is more than 1 (the DLA's optimized mode)."""
    return Finding("all 1", "one is more than 1") if softmax_is_accurate(question) is None else None


@check("batch")
def batch_is_one(question: Question) -> Finding | None:
    """The batch must be 1."""
    shape = input_shape(question)
    return None if all(extent == 1 for extent in shape[:-3]) else Finding(str(shape[:-3]), "1")


SOFTMAX = rules(
    "softmax",
    rule("softmax.platform", platform_is("orin"), source=_SOFTMAX, remedy=FALL_BACK),
    rule("softmax.axis", softmax_axis_is_no_batch, source=_SOFTMAX, remedy=FALL_BACK),
    rule(
        "softmax.rank",
        each(quantities.ranks, at_least(4)),
        source=f"{REPORTS}: lower-rank tensors are reshaped by a layer that the DLA does not support",
        fidelity="inferred",
        remedy=RESHAPE,
    ),
    rule(
        "softmax.optimized_axis",
        parameter(softmax_extent, between(1, 1024)),
        when=softmax_is_optimized,
        since="8.5",
        source=f"{_SOFTMAX}: optimized mode",
        remedy="Reshape so that the other extents of C, H and W are 1",
    ),
    rule(
        "softmax.approximation",
        softmax_is_accurate,
        since="8.5",
        source=f"{_SOFTMAX}: optimized mode has small errors that grow as the axis approaches 1024",
        severity="warning",
        remedy="If exact values matter, reshape so that the other extents of C, H and W are 1",
    ),
    rule(
        "softmax.accurate_8_4",
        softmax_is_accurate,
        until="8.4",
        source=f"{GUIDE_8_4}: Softmax layer",
        remedy="Use software 8.5 or newer",
    ),
    rule(
        "softmax.batch_8_4",
        batch_is_one,
        until="8.4",
        source=f"{GUIDE_8_4}: Softmax layer",
        remedy="Use software 8.5 or newer",
    ),
    rule(
        "softmax.int8_promotion",
        runs_in_fp16,
        precisions=INT8,
        source=f"{REPORTS} of 10.3: in an INT8 build it runs in FP16",
        severity="note",
        promotes_to=DataType.HALF,
        fidelity="inferred",
    ),
)
