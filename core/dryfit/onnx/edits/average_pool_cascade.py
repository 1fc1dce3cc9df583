"""A global average as poolings of small windows."""

from __future__ import annotations

import functools

import numpy as np
from onnx import NodeProto, helper

from dryfit.onnx.editing.edit import edit
from dryfit.onnx.editing.model_graph import ModelGraph, attribute
from dryfit.onnx.editing.parts import is_floating
from dryfit.onnx.editing.reshapes import reshape_node
from dryfit.onnx.editing.windows import is_whole_input, reduces_spatial_axes

LARGEST_WINDOW, LARGEST_KERNEL = 8, 32


@edit(
    "average-pool-cascade",
    title="global average pool as average pools of at most 8x8",
    cures=["reduce.operation", "reduce.keep_dims", "pooling.window"],
    changes="GlobalAveragePool, ReduceMean over H and W, and an AveragePool over the whole input become AveragePools "
    "whose windows and strides divide the extents, so that each element counts once; what is left of an extent with a "
    "prime factor above 8 (such as 13) becomes one depthwise Conv with equal weights. H and W have to be known, and no "
    "prime factor of them above 32",
    source="NVIDIA Deep-Learning-Accelerator-SW, operators: GlobalAveragePool; the average of averages of equally many "
    "elements is their average",
)
def average_pool_cascade(graph: ModelGraph, node: NodeProto) -> bool:
    """See `changes`."""
    x, output = node.input[0], node.output[0]
    shape = graph.shape_behind_batch(x, rank=4)
    if shape is None or not is_floating(graph, x):
        return False
    if node.op_type == "AveragePool":
        if not is_whole_input(node, shape[1:]) or max(shape[1:]) <= LARGEST_WINDOW:
            return False
    elif node.op_type != "GlobalAveragePool" and not reduces_spatial_axes(graph, node, "ReduceMean"):
        return False
    heights, widths = _factors(shape[1]), _factors(shape[2])
    if heights is None or widths is None:
        return False
    drops_axes = node.op_type == "ReduceMean" and not attribute(node, "keepdims", 1)
    new = _cascade(graph, x, node.name or "average", shape[0], heights, widths)
    if drops_axes:
        new.append(reshape_node(graph, new[-1].output[0], shape[:1], name=f"{node.name}_flat"))
    new[-1].output[0] = output
    graph.replace(node, new)
    return True


def _cascade(
    graph: ModelGraph, x: str, name: str, channels: int, heights: list[int], widths: list[int]
) -> list[NodeProto]:
    """Poolings, the large windows first, and a convolution for the factors that are too large for one."""
    small = [[one for one in extents if one <= LARGEST_WINDOW] for extents in (heights, widths)]
    large = [next((one for one in extents if one > LARGEST_WINDOW), 1) for extents in (heights, widths)]
    steps = max(len(small[0]), len(small[1]), 0 if max(large) > 1 else 1)
    dtype = helper.tensor_dtype_to_np_dtype(graph.data_type(x))
    new: list[NodeProto] = []
    for index in range(steps):
        window = [extents[index] if index < len(extents) else 1 for extents in small]
        new.append(graph.new_node("AveragePool", [x], name=f"{name}_{index}", kernel_shape=window, strides=window))
        x = new[-1].output[0]
    if max(large) > 1:
        weights = np.full((channels, 1, *large), 1 / (large[0] * large[1]), dtype)
        kernel = graph.add_constant(f"{name}_weights", weights)
        new.append(graph.new_node("Conv", [x, kernel], name=f"{name}_mean", kernel_shape=large, group=channels))
    return new


@functools.cache
def _best(extent: int) -> tuple[int, int, tuple[int, ...]] | None:
    """(number of factors that need a convolution, number of factors, the factors), the least of all ways."""
    if extent <= LARGEST_WINDOW:
        return 0, 1, (extent,)
    ways = [
        (rest[0], rest[1] + 1, (factor, *rest[2]))
        for factor in range(LARGEST_WINDOW, 1, -1)
        if extent % factor == 0 and (rest := _best(extent // factor)) is not None
    ]
    if not ways and extent <= LARGEST_KERNEL:
        return 1, 1, (extent,)
    return min(ways, default=None)


def _factors(extent: int) -> list[int] | None:
    found = _best(extent)
    return None if found is None else sorted(found[2], reverse=True)
