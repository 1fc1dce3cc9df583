"""Poolings of large windows as poolings of small ones."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np
from onnx import NodeProto, helper

from dryfit.onnx.editing.edit import edit
from dryfit.onnx.editing.model_graph import ModelGraph, attribute
from dryfit.onnx.editing.parts import is_floating, reshape_node


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


LARGEST_AVERAGE_WINDOW, LARGEST_KERNEL = 8, 32


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
        if not is_whole_input(node, shape[1:]) or max(shape[1:]) <= LARGEST_AVERAGE_WINDOW:
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
    small = [[one for one in extents if one <= LARGEST_AVERAGE_WINDOW] for extents in (heights, widths)]
    large = [next((one for one in extents if one > LARGEST_AVERAGE_WINDOW), 1) for extents in (heights, widths)]
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
    if extent <= LARGEST_AVERAGE_WINDOW:
        return 0, 1, (extent,)
    ways = [
        (rest[0], rest[1] + 1, (factor, *rest[2]))
        for factor in range(LARGEST_AVERAGE_WINDOW, 1, -1)
        if extent % factor == 0 and (rest := _best(extent // factor)) is not None
    ]
    if not ways and extent <= LARGEST_KERNEL:
        return 1, 1, (extent,)
    return min(ways, default=None)


def _factors(extent: int) -> list[int] | None:
    found = _best(extent)
    return None if found is None else sorted(found[2], reverse=True)


LARGEST_MAX_WINDOW = 8


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
    "window, padded at the end; a MaxPool whose window exceeds 8, with no padding or that of half its odd window, "
    "becomes MaxPools of stride 1 whose reaches add up, the last with its stride. Bit for bit the same",
    source="the maximum of maxima is the maximum; padding never wins",
)
def max_pool_cascade(graph: ModelGraph, node: NodeProto) -> bool:
    """See `changes`."""
    shape = graph.shape_behind_batch(node.input[0], rank=4)
    if shape is None:
        return False
    if node.op_type == "MaxPool":
        if [name for name in node.output[1:] if name] or max(
            attribute(node, "kernel_shape", [0])
        ) <= LARGEST_MAX_WINDOW:
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
    while LARGEST_MAX_WINDOW**steps < extent:
        steps += 1
    return next(size for size in range(1, LARGEST_MAX_WINDOW + 1) if size**steps >= extent)


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
