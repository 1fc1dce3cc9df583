"""Sums, products and quotients with constants as a scale."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from dryfit.onnx.editing.edit import edit
from dryfit.onnx.editing.model_graph import Array, ModelGraph
from dryfit.onnx.editing.parts import is_floating, scale_node


@edit(
    "constant-scale",
    title="arithmetic with constants as a scale",
    cures=[
        "elementwise.broadcast",
        "elementwise.operation",
        "elementwise.operation_xavier",
        "elementwise.operation_8_6_11",
        "elementwise.div_types",
        "elementwise.div_constant",
        "unary.operation",
        "unary.operation_xavier",
        "unary.operation_8_6_11",
    ],
    changes="Add, Sub, Mul and Div of a tensor of rank 4 and a constant with one value, or one a channel, and Neg, "
    "become a batch normalization, which is a scale layer. A division becomes a product with the reciprocal",
    source="NVIDIA Deep-Learning-Accelerator-SW, operators: Neg = Mul(-1); TensorRT's scale layer: x * scale + shift",
)
def constant_scale(graph: ModelGraph, node: NodeProto) -> bool:
    """See `changes`."""
    if node.op_type not in ("Add", "Sub", "Mul", "Div", "Neg") or not is_floating(graph, node.output[0]):
        return False
    extents = graph.shape_behind_batch(node.output[0], rank=4)
    constants = [graph.constant(name) for name in node.input]
    index = next((i for i, values in enumerate(constants) if values is None), None)
    if extents is None or index is None or graph.shape(node.input[index]) != graph.shape(node.output[0]):
        return False
    scale, shift = np.ones(1), np.zeros(1)
    if node.op_type == "Neg":
        scale = -scale
    else:
        values = _by_channel(constants[1 - index], extents[0])
        if values is None or (node.op_type == "Div" and (index or not values.all())):
            return False
        if node.op_type in ("Add", "Sub"):
            scale = -scale if node.op_type == "Sub" and index else scale
            shift = -values if node.op_type == "Sub" and not index else values
        else:
            scale = values if node.op_type == "Mul" else 1 / values
    name = node.name or node.op_type.lower()
    graph.replace(
        node, [scale_node(graph, node.input[index], scale, shift, name=f"{name}_scale", output=node.output[0])]
    )
    return True


def _by_channel(values: Array | None, channels: int) -> Array | None:
    """`float64[C]` or `float64[1]` of a constant that differs along the channels at most."""
    if values is None or values.ndim > 4:
        return None
    shape = (1,) * (4 - values.ndim) + values.shape
    if values.size != 1 and shape != (1, channels, 1, 1):
        return None
    return values.reshape(-1).astype(np.float64)
