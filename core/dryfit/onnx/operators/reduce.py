"""Reductions, positions of extremes, and running sums."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.elementwise import UnaryOperation
from dryfit.network.layers.ranking import TopK, TopKOperation
from dryfit.network.layers.reduction import Cumulative, CumulativeOperation, ReduceOperation
from dryfit.network.layers.shape_inference import mask_of
from dryfit.onnx.composition import (
    add,
    axes_of,
    cast,
    multiply,
    positive_axes,
    positive_axis,
    reduce,
    subtract,
    take,
    unary,
)
from dryfit.onnx.node import Node
from dryfit.onnx.operators.activation import activation
from dryfit.onnx.registry import operator
from dryfit.onnx.shapes import squeeze
from dryfit.onnx.tensors import NodeInput

_LARGEST_FLOAT = float(np.finfo(np.float32).max)
_PLAIN = {
    "ReduceSum": ReduceOperation.SUM,
    "ReduceMean": ReduceOperation.AVG,
    "ReduceMax": ReduceOperation.MAX,
    "ReduceMin": ReduceOperation.MIN,
    "ReduceProd": ReduceOperation.PROD,
}


def _axes(node: Node, x: NodeInput) -> tuple[int, ...]:
    """Axes to reduce; none where the node asks for nothing."""
    axes = axes_of(node, 1)
    if not axes:
        return () if node.get_int("noop_with_empty_axes", 0) else tuple(range(x.rank))
    return positive_axes(node, axes, x.rank)


def _reduced(node: Node, op: ReduceOperation, x: NodeInput, axes: Sequence[int]) -> NodeInput:
    return reduce(node, op, x, axes, keep_dims=bool(node.get_int("keepdims", 1))) if axes else x


@operator(*_PLAIN)
def plain_reduction(node: Node) -> NodeInput:
    """Reduce."""
    x = node[0]
    return _reduced(node, _PLAIN[node.op_type], x, _axes(node, x))


@operator("ReduceL1")
def reduce_l1(node: Node) -> NodeInput:
    """A sum of absolute values."""
    x = node[0]
    return _reduced(node, ReduceOperation.SUM, unary(node, UnaryOperation.ABS, x), _axes(node, x))


@operator("ReduceL2")
def reduce_l2(node: Node) -> NodeInput:
    """The root of a sum of squares."""
    x = node[0]
    total = _reduced(node, ReduceOperation.SUM, multiply(node, x, x), _axes(node, x))
    return _in_floating_point(node, UnaryOperation.SQRT, total)


@operator("ReduceSumSquare")
def reduce_sum_square(node: Node) -> NodeInput:
    """A sum of squares."""
    x = node[0]
    return _reduced(node, ReduceOperation.SUM, multiply(node, x, x), _axes(node, x))


@operator("ReduceLogSum")
def reduce_log_sum(node: Node) -> NodeInput:
    """The logarithm of a sum."""
    x = node[0]
    return _in_floating_point(node, UnaryOperation.LOG, _reduced(node, ReduceOperation.SUM, x, _axes(node, x)))


@operator("ReduceLogSumExp")
def reduce_log_sum_exp(node: Node) -> NodeInput:
    """The logarithm of a sum of powers of e, the maximum taken out so that no power overflows."""
    x = node[0]
    axes, dtype = _axes(node, x), x.dtype
    if not axes:
        return x
    if not dtype.is_floating_point:
        x = cast(node, x, DataType.FLOAT)
    keep_dims = bool(node.get_int("keepdims", 1))
    if any(x.shape[axis] == 0 for axis in axes):
        powers = unary(node, UnaryOperation.EXP, x)
        return cast(node, unary(node, UnaryOperation.LOG, _reduced(node, ReduceOperation.SUM, powers, axes)), dtype)
    # A maximum of minus infinity is made finite: infinity minus infinity is no number.
    largest = reduce(node, ReduceOperation.MAX, x, axes, keep_dims=True)
    largest = activation(node, largest, ActivationType.CLIP, -_LARGEST_FLOAT, _LARGEST_FLOAT)
    powers = unary(node, UnaryOperation.EXP, subtract(node, x, largest))
    total = reduce(node, ReduceOperation.SUM, powers, axes, keep_dims=True)
    result = cast(node, add(node, unary(node, UnaryOperation.LOG, total), largest), dtype)
    return result if keep_dims else squeeze(node, result, axes)


def _in_floating_point(node: Node, op: UnaryOperation, x: NodeInput) -> NodeInput:
    if x.dtype.is_floating_point:
        return unary(node, op, x)
    return cast(node, unary(node, op, cast(node, x, DataType.DOUBLE)), x.dtype)


def top_k(node: Node, x: NodeInput, op: TopKOperation, k: int, axis: int) -> tuple[NodeInput, NodeInput]:
    """(values, INT64 indices) of the k largest or smallest elements, the best first, the lower index first."""
    values, indices = node.add_all(TopK(op=op, k=k, axes=mask_of([axis])), x)
    return values, cast(node, indices, DataType.INT64)


@operator("ArgMax", "ArgMin")
def arg_extreme(node: Node) -> NodeInput:
    """Top-k with k = 1; on the reversed axis where the last of equal elements counts."""
    x = node[0]
    axis = positive_axis(node, node.get_int("axis", 0), x.rank)
    op = TopKOperation.MAX if node.op_type == "ArgMax" else TopKOperation.MIN
    if node.get_int("select_last_index", 0):
        last = node.static_shape(x, "The input of an operator that selects the last index")[axis] - 1
        order = np.arange(last, -1, -1)
        _, indices = top_k(node, take(node, x, order, axis), op, 1, axis)
        indices = subtract(node, node.array(np.full((1,) * x.rank, last), np.int64), indices)
    else:
        _, indices = top_k(node, x, op, 1, axis)
    return indices if node.get_int("keepdims", 1) else squeeze(node, indices, (axis,))


@operator("TopK")
def top_k_operator(node: Node) -> list[NodeInput]:
    """Top-k, K an attribute, a constant or a computed input."""
    x = node[0]
    axis = positive_axis(node, node.get_int("axis", -1), x.rank)
    op = TopKOperation.MAX if node.get_int("largest", 1) else TopKOperation.MIN
    count = node.input(1)
    if count is None or count.is_known:
        k = node.get_int("k", 0) if count is None else int(node.known(count, "K").reshape(()))
        return list(top_k(node, x, op, k, axis))
    values, indices = node.add_all(TopK(op=op, k=0, axes=mask_of([axis])), x, count)
    return [values, cast(node, indices, DataType.INT64)]


@operator("CumSum", "CumProd")
def cumulative(node: Node) -> NodeInput:
    """Cumulative."""
    layer = Cumulative(
        op=CumulativeOperation.SUM if node.op_type == "CumSum" else CumulativeOperation.PROD,
        exclusive=bool(node.get_int("exclusive", 0)),
        reverse=bool(node.get_int("reverse", 0)),
    )
    return node.add(layer, node[0], node[1])
