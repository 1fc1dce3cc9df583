"""Layers of rank 2 and 3 lifted to rank 4."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from dryfit.onnx.editing.edit import edit
from dryfit.onnx.editing.model_graph import ModelGraph, attribute
from dryfit.onnx.editing.parts import is_floating
from dryfit.onnx.editing.reshapes import reshape_node

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
    "of rank 2 or 3, get axes of extent 1 behind their own, by reshapes before and after; reshapes that meet are "
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
