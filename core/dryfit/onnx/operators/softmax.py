"""Softmax, its logarithm, and its limit. Up to opset 12 they flatten the axes from `axis` on into one."""

from __future__ import annotations

import math

import numpy as np

from dryfit.network.layers.axes_mask import mask_of
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.reduce import ReduceOperation
from dryfit.network.layers.softmax import Softmax
from dryfit.network.layers.top_k import TopKOperation
from dryfit.network.layers.unary import UnaryOperation
from dryfit.onnx.composition import (
    cast,
    elementwise,
    positive_axis,
    reduce,
    subtract,
    unary,
)
from dryfit.onnx.node import Node
from dryfit.onnx.operand import Operand
from dryfit.onnx.operators.reduce import top_k
from dryfit.onnx.registry import operator
from dryfit.onnx.shapes import flatten_to_matrix, lengths_of, reshape


@operator("Softmax", "LogSoftmax", "Hardmax")
def flattening_softmax(node: Node) -> Operand:
    """Softmax over all axes from `axis` on: over one axis where only one is longer than 1, else over the flattened."""
    x = node[0]
    axis = positive_axis(node, node.get_int("axis", 1), x.rank)
    long = [index for index in range(axis, x.rank) if x.shape[index] != 1]
    if len(long) <= 1:
        return _over(node, x, long[0] if long else min(axis, x.rank - 1))
    return reshape(node, _over(node, flatten_to_matrix(node, x, axis), 1), lengths_of(node, x))


@operator("Softmax", "LogSoftmax", "Hardmax", since=13)
def softmax(node: Node) -> Operand:
    """Softmax; for its logarithm, the input less its maximum and the logarithm of the sum of its powers of e."""
    x = node[0]
    return _over(node, x, positive_axis(node, node.get_int("axis", -1), x.rank))


def _over(node: Node, x: Operand, axis: int) -> Operand:
    if x.spec.is_static and math.prod(x.shape) == 0:
        return x
    if node.op_type == "Softmax":
        return node.add(Softmax(axes=mask_of([axis])), x)
    if node.op_type == "LogSoftmax":
        # The logarithm of a softmax layer's output would be minus infinity where a power of e underflows.
        shifted = subtract(node, x, reduce(node, ReduceOperation.MAX, x, [axis], keep_dims=True))
        total = reduce(node, ReduceOperation.SUM, unary(node, UnaryOperation.EXP, shifted), [axis], keep_dims=True)
        return subtract(node, shifted, unary(node, UnaryOperation.LOG, total))
    extent = node.static_shape(x, "The input of Hardmax")[axis]
    _, best = top_k(node, x, TopKOperation.MAX, 1, axis)
    positions = np.arange(extent).reshape([-1 if index == axis else 1 for index in range(x.rank)])
    return cast(node, elementwise(node, ElementWiseOperation.EQUAL, best, node.array(positions, np.int64)), x.dtype)
