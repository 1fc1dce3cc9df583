"""The small steps that operator functions are composed of: broadcast, reshape, transpose, arithmetic, cast, reduce.

Each adds at most one layer for the step itself, and nothing where there is nothing to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation, Unary, UnaryOperation
from dryfit.network.layers.indexing import Gather
from dryfit.network.layers.movement import Concatenation
from dryfit.network.layers.plugin import Plugin
from dryfit.network.layers.quantization import Cast
from dryfit.network.layers.reduction import Reduce, ReduceOperation
from dryfit.network.layers.shape_inference import mask_of
from dryfit.network.tensor import Array
from dryfit.onnx.node import Node
from dryfit.onnx.problems import ErrorCode
from dryfit.onnx.shapes import with_rank
from dryfit.onnx.tensors import NodeInput


def positive_axis(node: Node, axis: int, rank: int) -> int:
    """An axis counted from the front.

    Raises:
        NodeRefusedError: there is no such axis.
    """
    if not -rank <= axis < rank:
        raise node.refusal(
            "The axis must be an axis of the input",
            code=ErrorCode.INVALID_VALUE,
            found=axis,
            allowed=f"{-rank} to {rank - 1}",
            remedy="Fix the axis",
        )
    return axis % rank


def positive_axes(node: Node, axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Axes counted from the front, in the given order, each once.

    Raises:
        NodeRefusedError: one does not exist, or is given twice.
    """
    counted = tuple(positive_axis(node, int(axis), rank) for axis in axes)
    if len(set(counted)) != len(counted):
        raise node.refusal(
            "Each axis must be given once",
            code=ErrorCode.INVALID_VALUE,
            found=tuple(axes),
            remedy="Remove the repeated axis",
        )
    return counted


def axes_of(node: Node, index: int) -> tuple[int, ...] | None:
    """Axes that old opsets give as an attribute and new ones as an input; None where they are absent."""
    given = node.get_ints("axes")
    if given is not None:
        return given
    value = node.constant(index, "The axes")
    return None if value is None else tuple(int(axis) for axis in value.reshape(-1))


def scalar(node: Node, value: float, like: NodeInput) -> NodeInput:
    """A known number of the type and rank of another operand, so that it broadcasts against it."""
    return node.array(np.full((1,) * like.rank, value).astype(like.dtype.numpy))


def same_rank(node: Node, *operands: NodeInput) -> list[NodeInput]:
    """The operands at the largest rank among them, as NumPy broadcasts."""
    rank = max(operand.rank for operand in operands)
    return [with_rank(node, operand, rank) for operand in operands]


def elementwise(node: Node, op: ElementWiseOperation, a: NodeInput, b: NodeInput) -> NodeInput:
    """`op(a, b)`, broadcast as NumPy does."""
    return node.add(Elementwise(op=op), *same_rank(node, a, b))


def add(node: Node, a: NodeInput, b: NodeInput) -> NodeInput:
    """`a + b`."""
    return elementwise(node, ElementWiseOperation.SUM, a, b)


def subtract(node: Node, a: NodeInput, b: NodeInput) -> NodeInput:
    """`a - b`."""
    return elementwise(node, ElementWiseOperation.SUB, a, b)


def multiply(node: Node, a: NodeInput, b: NodeInput) -> NodeInput:
    """`a * b`."""
    return elementwise(node, ElementWiseOperation.PROD, a, b)


def divide(node: Node, a: NodeInput, b: NodeInput) -> NodeInput:
    """`a / b`."""
    return elementwise(node, ElementWiseOperation.DIV, a, b)


def unary(node: Node, op: UnaryOperation, x: NodeInput) -> NodeInput:
    """`op(x)`."""
    return node.add(Unary(op=op), x)


def reduce(node: Node, op: ReduceOperation, x: NodeInput, axes: Sequence[int], *, keep_dims: bool) -> NodeInput:
    """`x` reduced over axes that count from the front, at least one."""
    return node.add(Reduce(op=op, axes=mask_of(axes), keep_dims=keep_dims), x)


def cast(node: Node, x: NodeInput, dtype: DataType) -> NodeInput:
    """`x` in another type."""
    return x if x.dtype is dtype else node.add(Cast(to_type=dtype), x)


def concatenate(node: Node, operands: Sequence[NodeInput], axis: int) -> NodeInput:
    """The operands one after the other."""
    return operands[0] if len(operands) == 1 else node.add(Concatenation(axis=axis), *operands)


def take(node: Node, x: NodeInput, indices: Array, axis: int) -> NodeInput:
    """Slices of `x` at known indices of an axis."""
    return node.add(Gather(axis=axis), x, node.array(indices, np.int64))


def add_plugin(node: Node, name: str, fields: Mapping[str, Any], *inputs: NodeInput | None) -> list[NodeInput]:
    """The outputs of a layer plugin."""
    return node.add_all(Plugin(plugin_name=name, fields=dict(fields)), *inputs)
