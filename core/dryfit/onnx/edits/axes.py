"""The axes and the rank that a device takes: concatenations, layers of lower rank, and softmax over a long axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import NodeProto

from dryfit.onnx.editing.edit import edit
from dryfit.onnx.editing.model_graph import ModelGraph, attribute
from dryfit.onnx.editing.parts import is_floating, reshape_node, slice_node


@edit(
    "concatenation-axis",
    title="concatenation along C, between transposes",
    cures=["concatenation.axis", "concatenation.spatial", "concatenation.rank"],
    changes="Concat of tensors of rank 4 along H or W, and of rank 3 along any axis but the batch, becomes one along "
    "C: the axis changes places with C before and after it, and rank 3 is reshaped to rank 4",
    source="a transpose and its inverse cancel",
)
def concatenation_axis(graph: ModelGraph, node: NodeProto) -> bool:
    """See `changes`."""
    if node.op_type != "Concat" or len(node.input) < 2:
        return False
    shapes = [graph.shape_behind_batch(name) for name in node.input]
    rank = len(shapes[0] or ()) + 1
    axis = attribute(node, "axis", 1) % max(rank, 1)
    if rank not in (3, 4) or axis == 0 or (rank, axis) == (4, 1):
        return False
    if any(shape is None or len(shape) != rank - 1 for shape in shapes):
        return False
    order = [0, 1, 2, 3]
    order[1], order[axis] = order[axis], order[1]
    name = node.name or "concatenation"
    new: list[NodeProto] = []
    inputs = [_turned(graph, x, shape or (), order, name, new) for x, shape in zip(node.input, shapes, strict=True)]
    new.append(graph.new_node("Concat", inputs, name=f"{name}_channels", axis=1))
    concatenation = new[-1]
    if axis != 1:
        new.append(graph.new_node("Transpose", [concatenation.output[0]], name=f"{name}_back", perm=order))
    if rank == 3:
        extents = graph.shape_behind_batch(node.output[0], rank=3)
        if extents is None:
            return False
        new.append(reshape_node(graph, new[-1].output[0], extents, name=f"{name}_low"))
    new[-1].output[0] = node.output[0]
    graph.replace(node, new)
    concatenation.name, new[-1].name = new[-1].name, concatenation.name
    return True


def _turned(
    graph: ModelGraph, x: str, shape: tuple[int, ...], order: list[int], name: str, new: list[NodeProto]
) -> str:
    """One input with its axes in the new order; a constant is turned now."""
    values = graph.constant(x)
    if values is not None:
        lifted = values if values.ndim == 4 else values.reshape(*values.shape, 1)
        return graph.add_constant(f"{x}_turned", np.transpose(lifted, order))
    if len(shape) == 2:
        new.append(reshape_node(graph, x, (*shape, 1), name=f"{name}_high"))
        x = new[-1].output[0]
    if order != [0, 1, 2, 3]:
        new.append(graph.new_node("Transpose", [x], name=f"{name}_turned", perm=order))
        x = new[-1].output[0]
    return x


@edit(
    "concatenation-single",
    title="concatenation of one tensor removed",
    cures=["concatenation.inputs"],
    changes="Concat of one input is removed; its readers use the input. Outputs of the model do not change",
    source="it is its input",
)
def concatenation_single(graph: ModelGraph, node: NodeProto) -> bool:
    """See `changes`."""
    if node.op_type != "Concat" or len(node.input) != 1 or graph.is_output(node.output[0]):
        return False
    graph.replace(node, [])
    graph.redirect(node.output[0], node.input[0])
    return True


_UNARY = ("Relu", "LeakyRelu", "Sigmoid", "Tanh", "Clip", "Abs")
_BINARY = ("Add", "Sub", "Mul", "Div", "Max", "Min")


@edit(
    "rank-four",
    title="softmax, activations and elementwise layers lifted to rank 4",
    cures=[
        "softmax.rank",
        "activation.rank",
        "elementwise.rank",
        "unary.rank",
        "shuffle.rank",
        "shuffle.reshaped_rank",
    ],
    changes="Softmax, Relu, LeakyRelu, Sigmoid, Tanh, Clip, Abs, and Add, Sub, Mul, Div, Max, Min of two tensors, all "
    "of rank 2 or 3, get trailing axes of extent 1, by reshapes before and after; reshapes that meet are "
    "joined or cancel. All extents but the batch have to be known",
    source="NVIDIA Model Optimizer lifts every tensor to rank 4 for the DLA; extents of 1 change nothing",
)
def rank_four(graph: ModelGraph, node: NodeProto) -> bool:
    """See `changes`."""
    if node.op_type not in (*_UNARY, *_BINARY, "Softmax") or len(node.output) != 1:
        return False
    extents = graph.shape_behind_batch(node.output[0])
    if extents is None or len(extents) not in (1, 2) or not is_floating(graph, node.output[0]):
        return False
    count = len(node.input) if node.op_type in _BINARY else 1
    if node.op_type in _BINARY and count != 2:
        return False
    rank = len(extents) + 1
    shapes = [graph.shape_behind_batch(name) for name in node.input[:count]]
    values = [graph.constant(name) for name in node.input[:count]]
    fits = [
        value is not None or (shape is not None and len(shape) == rank - 1)
        for shape, value in zip(shapes, values, strict=True)
    ]
    axis = _softmax_axis(graph, node, rank)
    if not all(fits) or all(value is not None for value in values) or axis == 0:
        return False
    name = node.name or node.op_type.lower()
    new: list[NodeProto] = []
    inputs = list(node.input)
    for index, (shape, value) in enumerate(zip(shapes, values, strict=True)):
        if value is not None:
            lifted = value.reshape((1,) * (rank - value.ndim) + value.shape)
            lifted = lifted.reshape(*lifted.shape, *(1 for _ in range(4 - rank)))
            inputs[index] = graph.add_constant(f"{name}_constant", np.asarray(lifted))
        else:
            new.append(reshape_node(graph, inputs[index], _lifted(shape or ()), name=f"{name}_high"))
            inputs[index] = new[-1].output[0]
    lifted_node = graph.new_node(node.op_type, inputs, name=f"{name}_rank4", axis=axis)
    lifted_node.attribute.extend([one for one in node.attribute if one.name != "axis"])
    new += [lifted_node, reshape_node(graph, lifted_node.output[0], extents, name=f"{name}_low", output=node.output[0])]
    graph.replace(node, new)
    lifted_node.name, new[-1].name = new[-1].name, lifted_node.name
    return True


def _lifted(extents: tuple[int, ...]) -> tuple[int, ...]:
    return (*extents, *(1 for _ in range(3 - len(extents))))


def _softmax_axis(graph: ModelGraph, node: NodeProto, rank: int) -> int | None:
    """The axis of a softmax, counted from the front; None for other nodes; 0 where it cannot be lifted."""
    if node.op_type != "Softmax":
        return None
    axis = attribute(node, "axis", -1 if graph.opset >= 13 else 1)
    axis = int(axis) % rank
    # Up to opset 12 a softmax runs over all axes from this one on.
    return axis if graph.opset >= 13 or axis == rank - 1 else 0


SHORTEST_AXIS = 1025
LONGEST_AXIS = 8192
"""Below, the DLA's optimized mode takes all positions at once; above, its accurate mode takes none. Source: TensorRT
developer guide, Working with DLA: Layer Support and Restrictions: Softmax layer."""
MOST_POSITIONS = 16
"""Our choice: a position costs two layers, a slice and a softmax; with what joins them, one becomes at most 43."""


@edit(
    "softmax-split",
    title="softmax over a long axis as one softmax per position",
    cures=["softmax.optimized_axis", "softmax.accurate_8_4"],
    changes="Softmax of rank 4 over 1025 to 8192 elements of C, H or W at 2 to 16 positions of the other two becomes a "
    "Slice and a Softmax for each position, joined along C, with transposes where the order needs them. All extents "
    "but the batch have to be known",
    source="positions of a softmax do not depend on each other; the DLA's accurate mode takes 8192 elements at one",
)
def softmax_split(graph: ModelGraph, node: NodeProto) -> bool:
    """See `changes`."""
    if node.op_type != "Softmax":
        return False
    extents = graph.shape_behind_batch(node.input[0], rank=4)
    axis = None if extents is None else _axis(graph, node, (0, *extents))
    if extents is None or axis is None or not SHORTEST_AXIS <= extents[axis - 1] <= LONGEST_AXIS:
        return False
    shape = (0, *extents)
    first, second = sorted({1, 2, 3} - {axis}, key=lambda other: -shape[other])
    if not 1 < shape[first] * shape[second] <= MOST_POSITIONS:
        return False
    _split(graph, node, shape, (first, second, axis))
    return True


def _split(graph: ModelGraph, node: NodeProto, shape: tuple[int, ...], axes: tuple[int, int, int]) -> None:
    """Rewrite: slices [N, 1, 1, axis], joined along C to [N, first, 1, axis], and those to [N, second, first, axis].

    No reshape is made: beside a concatenation, the DLA's software before 10 takes none.
    """
    first, second, axis = axes
    name, x, taken = node.name or "softmax", node.input[0], (first, second)
    new: list[NodeProto] = []

    def add(operator: str, inputs: Sequence[str], part: str, **attributes: Any) -> str:
        new.append(graph.new_node(operator, inputs, name=f"{name}_{part}", **attributes))
        output: str = new[-1].output[0]
        return output

    if axis != 3:
        x, taken = add("Transpose", [x], "turned", perm=[0, first, second, axis]), (1, 2)
    rows = []
    for row in range(shape[second]):
        parts = []
        for column in range(shape[first]):
            new.append(_slice(graph, x, taken, (column, row), (shape[first], shape[second]), name))
            # Along the last axis the softmax up to opset 12 means the same.
            parts.append(add("Softmax", [new[-1].output[0]], "part", axis=3))
        rows.append(add("Concat", parts, "row", axis=1))
    order = [0, first, second, axis]
    if len(rows) > 1:
        rows = [add("Transpose", [row], "row_turned", perm=[0, 2, 1, 3]) for row in rows]
        add("Concat", rows, "joined", axis=1)
        order = [0, second, first, axis]
    if order != [0, 1, 2, 3]:
        add("Transpose", [new[-1].output[0]], "back", perm=[order.index(one) for one in range(4)])
    new[-1].output[0] = node.output[0]
    graph.replace(node, new)


def _axis(graph: ModelGraph, node: NodeProto, shape: tuple[int, ...]) -> int | None:
    """The only axis that a softmax runs over, 1 to 3; None where there is none, or it is the batch.

    Source: ONNX Softmax: up to opset 12 it runs over all axes from its own on, which may all but one have extent 1.
    """
    if graph.opset >= 13:
        return int(attribute(node, "axis", -1)) % 4 or None
    start = int(attribute(node, "axis", 1)) % 4
    long = [axis for axis in range(start, 4) if shape[axis] != 1]
    return long[0] if start and len(long) == 1 else None


def _slice(
    graph: ModelGraph, x: str, axes: tuple[int, int], position: tuple[int, int], extents: tuple[int, int], name: str
) -> NodeProto:
    """One position of `x`; an axis of extent 1 is not mentioned."""
    cuts = [(start, axis) for start, axis, extent in zip(position, axes, extents, strict=True) if extent > 1]
    starts, cut_axes = [start for start, _ in cuts], [axis for _, axis in cuts]
    ends = [start + 1 for start in starts]
    output = graph.fresh_name(f"{name}_position_out")
    return slice_node(graph, x, starts, ends, cut_axes, name=f"{name}_position", output=output)
