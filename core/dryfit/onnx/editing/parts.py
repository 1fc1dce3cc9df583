"""Nodes that several edits build from, and the reshapes that they leave behind.

Chains of reshapes are joined, and those that do nothing removed. An edit that lifts one layer to rank 4 puts a reshape
before and behind it. Two such layers in a row would keep two reshapes between them, which a device may not have.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

import numpy as np
from onnx import AttributeProto, NodeProto, TensorProto, helper

from dryfit.network.tensor import Array
from dryfit.onnx.editing.model_graph import ModelGraph, attribute

FLOATING = (TensorProto.FLOAT, TensorProto.FLOAT16)


def is_floating(graph: ModelGraph, name: str) -> bool:
    """Whether a value is FLOAT or FLOAT16."""
    return graph.data_type(name) in FLOATING


def scale_node(
    graph: ModelGraph, x: str, scale: Array | float, shift: Array | float, *, name: str, output: str | None = None
) -> NodeProto:
    """`x * scale + shift` with one value or one a channel, as a batch normalization, which devices run as a scale.

    Args:
        graph: takes the constants.
        x: `[N, C, H, W]`, C known.
        scale: `[C]` or one number.
        shift: `[C]` or one number.
        name: of the node.
        output: the value that it computes.
    """
    channels = (graph.shape_behind_batch(x, rank=4) or (0,))[0]
    scales, shifts = (np.broadcast_to(np.asarray(one, np.float64).reshape(-1), (channels,)) for one in (scale, shift))
    dtype = helper.tensor_dtype_to_np_dtype(graph.data_type(x))
    parameters = {"scale": scales, "shift": shifts, "mean": np.zeros(channels), "variance": np.ones(channels)}
    inputs = [graph.add_constant(f"{name}_{part}", values.astype(dtype)) for part, values in parameters.items()]
    return graph.new_node("BatchNormalization", [x, *inputs], name=name, output=output, epsilon=0.0)


def clip_node(
    graph: ModelGraph,
    x: str,
    upper: float,
    *,
    name: str,
    lower: float = 0.0,
    like: str | None = None,
    output: str | None = None,
) -> NodeProto:
    """`x` between two bounds, which may be infinite.

    The element type is that of `like`, where `x` is not in the graph yet.
    """
    if (lower, upper) == (0.0, math.inf):
        return graph.new_node("Relu", [x], name=name, output=output)
    bounds = {part: value for part, value in (("min", lower), ("max", upper)) if math.isfinite(value)}
    if graph.opset < 11:
        return graph.new_node("Clip", [x], name=name, output=output, **bounds)
    inputs = [
        graph.scalar_like(f"{name}_{part}", bounds[part], like or x) if part in bounds else ""
        for part in ("min", "max")
    ]
    while inputs and not inputs[-1]:
        inputs.pop()
    return graph.new_node("Clip", [x, *inputs], name=name, output=output)


def slice_node(
    graph: ModelGraph,
    x: str,
    starts: Sequence[int],
    ends: Sequence[int],
    axes: Sequence[int],
    *,
    name: str,
    output: str,
) -> NodeProto:
    """A slice with steps of 1."""
    if graph.opset < 10:
        return graph.new_node("Slice", [x], name=name, output=output, starts=starts, ends=ends, axes=axes)
    inputs = [
        graph.add_constant(f"{name}_{part}", np.asarray(values, np.int64))
        for part, values in (("starts", starts), ("ends", ends), ("axes", axes))
    ]
    return graph.new_node("Slice", [x, *inputs], name=name, output=output)


def one_value(array: Array | None) -> float | None:
    """The value of a constant that has one element, or the same one everywhere; None for others."""
    if array is None or not array.size or (array.dtype.kind not in "fiu" and array.dtype.name != "bfloat16"):
        return None
    flat = array.reshape(-1)
    return float(flat[0]) if bool((flat == flat[0]).all()) else None


RESHAPES = ("Reshape", "Flatten", "Squeeze", "Unsqueeze")
_ELEMENT_BY_ELEMENT = ("Relu", "LeakyRelu", "Sigmoid", "Tanh", "Clip", "Abs", "Neg", "Identity", "Dropout")


def reshape_node(
    graph: ModelGraph, x: str, extents: tuple[int, ...], *, name: str, output: str | None = None
) -> NodeProto:
    """A node that gives `x` these extents behind its batch."""
    target = graph.add_constant(f"{name}_shape", np.asarray([0, *extents], np.int64))
    return graph.new_node("Reshape", [x, target], name=name, output=output)


def tidy_reshapes(graph: ModelGraph) -> None:
    """Clear away; only what an edit made, and what stands directly before or behind it, is touched."""
    waiting = deque(graph.nodes)
    while waiting:
        node = waiting.popleft()
        if graph.holds(node):
            again = _sunk(graph, node) or _joined(graph, node)
            beside = [one for value in again for one in (graph.producer(value), *graph.consumers(value))]
            waiting.extendleft(one for one in beside if one is not None)


def keeps_batch(graph: ModelGraph, node: NodeProto) -> bool:
    """Whether a node reshapes nothing but what is behind the first axis."""
    if node.op_type not in RESHAPES:
        return False
    before, after = graph.shape_behind_batch(node.input[0]), graph.shape_behind_batch(node.output[0])
    if before is None or after is None or math.prod(before) != math.prod(after):
        return False
    batches = [(graph.shape(name) or (None,))[0] for name in (node.input[0], node.output[0])]
    return batches[0] == batches[1] or None in batches


def _joined(graph: ModelGraph, second: NodeProto) -> list[str]:
    """One reshape for two in a row, or none for two that undo each other; returns the values beside what changed."""
    first = graph.producer(second.input[0]) if second.input else None
    if first is None or not (graph.is_made(first) or graph.is_made(second)):
        return []
    if not (keeps_batch(graph, first) and keeps_batch(graph, second)):
        return []
    source, result = first.input[0], second.output[0]
    extents = graph.shape_behind_batch(result) or ()
    if graph.shape_behind_batch(source) == extents and not graph.is_output(result):
        graph.replace(second, [])
        graph.redirect(result, source)
        return [source]
    graph.replace(second, [reshape_node(graph, source, extents, name=f"{second.name}_joined", output=result)])
    return [source, result]


def _sunk(graph: ModelGraph, node: NodeProto) -> list[str]:
    """A reshape that an edit made, to a lower rank, moved behind the layer that follows it; returns as `_joined`."""
    if not graph.is_made(node) or not keeps_batch(graph, node) or not graph.has_one_use(node.output[0]):
        return []
    (follower,) = graph.consumers(node.output[0])
    source = graph.shape_behind_batch(node.input[0], rank=4)
    low = graph.shape_behind_batch(node.output[0], rank=2)
    if source is None or low is None or len(follower.output) != 1 or follower.input[0] != node.output[0]:
        return []
    if not (follower.op_type in _ELEMENT_BY_ELEMENT or _is_channel_softmax(follower, source)):
        return []
    moved = NodeProto()
    moved.CopyFrom(follower)
    moved.input[0] = node.input[0]
    moved.output[0] = graph.fresh_name(f"{follower.output[0]}_lifted")
    if moved.op_type == "Softmax":
        del moved.attribute[:]
        moved.attribute.extend([one for one in follower.attribute if one.name != "axis"])
        moved.attribute.append(_axis_attribute(1))
    back = reshape_node(graph, moved.output[0], low, name=f"{follower.name}_flattened", output=follower.output[0])
    graph.replace(node, [])
    name = follower.name
    graph.replace(follower, [moved, back])
    moved.name, back.name = name, graph.fresh_name(f"{name}_flattened")
    return [moved.output[0], back.output[0]]


def _is_channel_softmax(node: NodeProto, source: tuple[int, ...]) -> bool:
    """Whether a node is a softmax over all elements of `[N, C]` that were `[N, C, 1, 1]`."""
    return node.op_type == "Softmax" and attribute(node, "axis", -1) in (1, -1) and source[1:] == (1, 1)


def _axis_attribute(axis: int) -> AttributeProto:
    return helper.make_attribute("axis", axis)
