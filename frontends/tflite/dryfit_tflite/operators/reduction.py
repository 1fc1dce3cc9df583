"""Reductions, positions of extremes, the largest elements and running sums."""

from __future__ import annotations

from dryfit.network.layers.quantization import Cast
from dryfit.network.layers.ranking import TopK, TopKOperation
from dryfit.network.layers.reduction import Cumulative, CumulativeOperation, Reduce, ReduceOperation
from dryfit.network.layers.slice import Shuffle
from dryfit_tflite.operator_view import CHANNELS_FIRST, Operator
from dryfit_tflite.registry import operator

_REDUCTIONS = {
    "MEAN": ReduceOperation.AVG,
    "SUM": ReduceOperation.SUM,
    "REDUCE_PROD": ReduceOperation.PROD,
    "REDUCE_MAX": ReduceOperation.MAX,
    "REDUCE_MIN": ReduceOperation.MIN,
    "REDUCE_ANY": ReduceOperation.MAX,
    "REDUCE_ALL": ReduceOperation.MIN,
}


@operator(*_REDUCTIONS)
def reduction(op: Operator) -> None:
    """Reduce over the axes of input 1, of images with channels first."""
    rank, keeps = op.rank(0), bool(op.option("KeepDims"))
    axes = {op.axis(axis, rank) for axis in op.ints(1, "The axes")}
    first = rank == 4 and (op.value(0).is_only_channels_first or axes == {1, 2})
    places = {CHANNELS_FIRST.index(axis) for axis in axes} if first else axes
    if not axes:
        op.give_codes(op.codes(0))
        return
    is_spatial = first and places == {2, 3}
    mask = sum(1 << axis for axis in places)
    if first and not keeps and not is_spatial:
        first, mask = False, sum(1 << axis for axis in axes)
    layer = Reduce(op=_REDUCTIONS[op.record.name], axes=mask, keep_dims=keeps)
    op.give(op.add(layer, op.real(0, first=first)), first=first and keeps)


@operator("ARG_MAX", "ARG_MIN")
def arg_extreme(op: Operator) -> None:
    """The index of the largest or smallest element, the first of equal ones."""
    rank = op.rank(0)
    axis = op.axis(op.ints(1, "The axis")[0], rank)
    operation = TopKOperation.MAX if op.record.name == "ARG_MAX" else TopKOperation.MIN
    to_type = op.output().tensor.dtype
    _, indices = op.add_all(TopK(op=operation, k=1, axes=1 << axis), op.real(0))
    shape = tuple(extent for index, extent in enumerate(op.shape(0)) if index != axis)
    result = op.add(Shuffle(reshape_dims=shape, zero_is_placeholder=False), indices)
    if to_type is not None and result.dtype is not to_type:
        result = op.add(Cast(to_type=to_type), result)
    op.give_codes(result)


@operator("TOPK_V2")
def top_k(op: Operator) -> None:
    """The largest elements of the last axis, and their indices."""
    count = op.ints(1, "The number of elements")[0]
    values, indices = op.add_all(TopK(op=TopKOperation.MAX, k=count, axes=1 << (op.rank(0) - 1)), op.real(0))
    op.give(values)
    if op.output_count > 1:
        op.give_codes(indices, 1)


@operator("CUMSUM")
def running_sum(op: Operator) -> None:
    """Cumulative."""
    layer = Cumulative(
        op=CumulativeOperation.SUM, exclusive=bool(op.option("Exclusive")), reverse=bool(op.option("Reverse"))
    )
    op.constant(1, "The axis")
    op.give(op.add(layer, op.real(0), op.codes(1)))
