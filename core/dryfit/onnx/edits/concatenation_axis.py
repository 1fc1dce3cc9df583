"""A concatenation along another axis than C, between transposes."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from dryfit.onnx.editing.edit import edit
from dryfit.onnx.editing.model_graph import ModelGraph, attribute
from dryfit.onnx.editing.reshapes import reshape_node


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
