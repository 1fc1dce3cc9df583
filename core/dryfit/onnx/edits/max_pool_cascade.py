"""A maximum over a large window as poolings of small windows."""

from __future__ import annotations

import math

from onnx import NodeProto

from dryfit.onnx.editing.edit import edit
from dryfit.onnx.editing.model_graph import ModelGraph, attribute
from dryfit.onnx.editing.reshapes import reshape_node
from dryfit.onnx.editing.windows import has_no_padding, is_dense, is_whole_input, reduces_spatial_axes

LARGEST_WINDOW = 8


@edit(
    "max-pool-cascade",
    title="max pool over a large window as max pools of at most 8x8",
    cures=[
        "pooling.window",
        "pooling.padding",
        "reduce.operation",
        "reduce.platform",
        "reduce.software",
        "reduce.keep_dims",
    ],
    changes="GlobalMaxPool, ReduceMax over H and W, and a MaxPool over the whole input become MaxPools with stride = "
    "window, padded at the end; a MaxPool whose window is above 8, with no padding or that of half its odd window, "
    "becomes MaxPools of stride 1 whose reaches add up, the last with its stride. Bit for bit the same",
    source="the maximum of maxima is the maximum; padding never wins",
)
def max_pool_cascade(graph: ModelGraph, node: NodeProto) -> bool:
    """See `changes`."""
    shape = graph.shape_behind_batch(node.input[0], rank=4)
    if shape is None:
        return False
    if node.op_type == "MaxPool":
        if [name for name in node.output[1:] if name] or max(attribute(node, "kernel_shape", [0])) <= LARGEST_WINDOW:
            return False
        if not is_whole_input(node, shape[1:]):
            return _overlapping(graph, node)
    elif node.op_type != "GlobalMaxPool" and not reduces_spatial_axes(graph, node, "ReduceMax"):
        return False
    _whole(graph, node, shape)
    return True


def _whole(graph: ModelGraph, node: NodeProto, shape: tuple[int, ...]) -> None:
    """Windows side by side until one element is left."""
    x, extents = node.input[0], list(shape[1:])
    new: list[NodeProto] = []
    while not new or max(extents) > 1:
        window = [_window(extent) for extent in extents]
        padding = [-extent % size for extent, size in zip(extents, window, strict=True)]
        new.append(
            graph.new_node(
                "MaxPool",
                [x],
                name=f"{node.name or 'max'}_{len(new)}",
                kernel_shape=window,
                strides=window,
                pads=[0, 0, *padding],
            )
        )
        x, extents = new[-1].output[0], [-(-e // size) for e, size in zip(extents, window, strict=True)]
    if node.op_type == "ReduceMax" and not attribute(node, "keepdims", 1):
        new.append(reshape_node(graph, x, shape[:1], name=f"{node.name}_flat"))
    new[-1].output[0] = node.output[0]
    graph.replace(node, new)


def _window(extent: int) -> int:
    """The window with which the fewest steps are as equal as they can be."""
    steps = 1
    while LARGEST_WINDOW**steps < extent:
        steps += 1
    return next(size for size in range(1, LARGEST_WINDOW + 1) if size**steps >= extent)


def _overlapping(graph: ModelGraph, node: NodeProto) -> bool:
    """A window as a chain of smaller ones of stride 1."""
    kernel = attribute(node, "kernel_shape")
    strides = attribute(node, "strides") or [1, 1]
    half = [size // 2 for size in kernel]
    is_padded = attribute(node, "pads") == half + half and attribute(node, "auto_pad", "NOTSET") == "NOTSET"
    if not is_dense(node) or attribute(node, "ceil_mode", 0) or len(kernel) != 2:
        return False
    if not has_no_padding(node) and not (is_padded and all(size % 2 for size in kernel)):
        return False
    chains = [_chain(size) for size in kernel]
    count = max(map(len, chains))
    x = node.input[0]
    new: list[NodeProto] = []
    for index in range(count):
        window = [chain[index] if index < len(chain) else 1 for chain in chains]
        new.append(
            graph.new_node(
                "MaxPool",
                [x],
                name=f"{node.name or 'max'}_{index}",
                kernel_shape=window,
                strides=strides if index == count - 1 else [1, 1],
                pads=[size // 2 for size in window] * 2 if is_padded else None,
            )
        )
        x = new[-1].output[0]
    new[-1].output[0] = node.output[0]
    graph.replace(node, new)
    return True


def _chain(size: int) -> list[int]:
    """Odd windows of at most 7 (and one even one for an even size) whose reaches add up."""
    steps = math.ceil((size - 1) / 6)
    return [7] * (steps - 1) + [size - 6 * (steps - 1)] if steps else [1]
