"""A slice with steps as a depthwise convolution."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, helper

from dryfit.onnx.editing.edit import edit
from dryfit.onnx.editing.model_graph import ModelGraph
from dryfit.onnx.editing.parts import is_floating

LARGEST_KERNEL = 32


@edit(
    "strided-slice-convolution",
    title="slice with steps as a depthwise convolution",
    cures=["slice.stride", "slice.software"],
    changes="Slice of rank 4 along H and W with constant bounds and a step above 1, up to the end of the axis, becomes "
    "a depthwise Conv with that stride whose kernel has one 1, where the slice begins",
    source="products with 1 keep a number and products with 0 drop it; numbers that are not finite are not kept apart",
)
def strided_slice_convolution(graph: ModelGraph, node: NodeProto) -> bool:
    """See `changes`."""
    if node.op_type != "Slice" or not is_floating(graph, node.input[0]):
        return False
    shape, result = (graph.shape_behind_batch(name, rank=4) for name in (node.input[0], node.output[0]))
    places = _places(graph, node)
    if shape is None or result is None or places is None or shape[0] != result[0]:
        return False
    starts, steps = [0, 0], [1, 1]
    for axis, (start, step) in places.items():
        extent = (0, 0, *shape[1:])[axis]
        if axis not in (2, 3) or step < 1:
            return False
        starts[axis - 2], steps[axis - 2] = min(max(start + extent if start < 0 else start, 0), extent), step
    reached = [-(-(extent - start) // step) for extent, start, step in zip(shape[1:], starts, steps, strict=True)]
    if max(steps) == 1 or reached != list(result[1:]) or max(starts) >= LARGEST_KERNEL:
        return False
    kernel = np.zeros(
        (shape[0], 1, starts[0] + 1, starts[1] + 1), helper.tensor_dtype_to_np_dtype(graph.data_type(node.input[0]))
    )
    kernel[:, :, -1, -1] = 1
    name = node.name or "slice"
    new = graph.new_node(
        "Conv",
        [node.input[0], graph.add_constant(f"{name}_kernel", kernel)],
        name=f"{name}_convolution",
        output=node.output[0],
        kernel_shape=kernel.shape[2:],
        strides=steps,
        group=shape[0],
    )
    graph.replace(node, [new])
    return True


def _places(graph: ModelGraph, node: NodeProto) -> dict[int, tuple[int, int]] | None:
    """Axis to (start, step); None where they are computed."""
    if graph.opset < 10:
        return None
    values = [graph.constant(name) if name else None for name in node.input[1:]]
    if len(values) < 4 or any(value is None for value in values):
        return None
    starts, _, axes, steps = ([int(one) for one in value.reshape(-1)] for value in values if value is not None)
    return {axis % 4: (start, step) for axis, start, step in zip(axes, starts, steps, strict=True)}
