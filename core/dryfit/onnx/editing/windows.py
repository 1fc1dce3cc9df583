"""What edits ask about poolings and reductions."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto

from dryfit.onnx.editing.model_graph import ModelGraph, attribute


def has_no_padding(node: NodeProto) -> bool:
    """Whether a window stays inside the input."""
    automatic = attribute(node, "auto_pad", "NOTSET")
    return automatic == "VALID" or (automatic == "NOTSET" and not any(attribute(node, "pads", [])))


def is_dense(node: NodeProto) -> bool:
    """Whether a window has no holes."""
    return all(one == 1 for one in attribute(node, "dilations", []))


def is_whole_input(node: NodeProto, spatial: Sequence[int]) -> bool:
    """Whether a pooling has one window: all of the input, without padding."""
    kernel = attribute(node, "kernel_shape", [])
    return list(spatial) == list(kernel) and has_no_padding(node) and is_dense(node)


def reduces_spatial_axes(graph: ModelGraph, node: NodeProto, operator: str) -> bool:
    """Whether a node is this reduction of a tensor of rank 4 over H and W."""
    if node.op_type != operator or graph.shape_behind_batch(node.input[0], rank=4) is None:
        return False
    axes = attribute(node, "axes")
    if axes is None and len(node.input) > 1:
        values = graph.constant(node.input[1])
        axes = None if values is None else [int(axis) for axis in values.reshape(-1)]
    return axes is not None and sorted(axis % 4 for axis in axes) == [2, 3]
