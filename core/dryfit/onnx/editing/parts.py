"""Nodes that several edits build from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto, TensorProto, helper

from dryfit.onnx.editing.model_graph import Array, ModelGraph

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
    graph: ModelGraph, x: str, upper: float, *, name: str, like: str | None = None, output: str | None = None
) -> NodeProto:
    """`x` between 0 and an upper bound. The element type is that of `like`, where `x` is not in the graph yet."""
    if graph.opset < 11:
        return graph.new_node("Clip", [x], name=name, output=output, min=0.0, max=upper)
    bounds = [graph.scalar_like(f"{name}_{part}", value, like or x) for part, value in (("min", 0.0), ("max", upper))]
    return graph.new_node("Clip", [x, *bounds], name=name, output=output)


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
