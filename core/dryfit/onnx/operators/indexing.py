"""Operators that pick or place elements by index, and those that find them."""

from __future__ import annotations

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.attention import KVCacheMode, KVCacheUpdate
from dryfit.network.layers.indexing import Gather, GatherMode, NonZero, OneHot, Scatter, ScatterMode, ScatterReduction
from dryfit.network.layers.ranking import BoundingBoxFormat, Nms
from dryfit.onnx.composition import add_plugin, cast, positive_axis
from dryfit.onnx.node import Node
from dryfit.onnx.registry import operator
from dryfit.onnx.shapes import expand, lengths_of, reshape_to, squeeze, transpose
from dryfit.onnx.tensors import NodeInput

_INDEX_TYPES = (DataType.INT32, DataType.INT64)


@operator("Gather")
def gather(node: Node) -> NodeInput:
    """Gather."""
    layer = Gather(axis=positive_axis(node, node.get_int("axis", 0), node[0].rank))
    return node.add(layer, node[0], node[1])


@operator("GatherElements")
def gather_elements(node: Node) -> NodeInput:
    """Gather."""
    layer = Gather(mode=GatherMode.ELEMENT, axis=positive_axis(node, node.get_int("axis", 0), node[0].rank))
    return node.add(layer, node[0], node[1])


@operator("GatherND")
def gather_nd(node: Node) -> NodeInput:
    """Gather."""
    layer = Gather(mode=GatherMode.ND, num_elementwise_dims=node.get_int("batch_dims", 0))
    return node.add(layer, node[0], node[1])


def _reduction(node: Node) -> ScatterReduction:
    return ScatterReduction(node.choice("reduction", "none", [member.value for member in ScatterReduction]))


@operator("Scatter", "ScatterElements")
def scatter_elements(node: Node) -> NodeInput:
    """Scatter."""
    layer = Scatter(
        mode=ScatterMode.ELEMENT,
        axis=positive_axis(node, node.get_int("axis", 0), node[0].rank),
        reduction=_reduction(node),
    )
    return node.add(layer, node[0], node[1], node[2])


@operator("ScatterND")
def scatter_nd(node: Node) -> NodeInput:
    """Scatter."""
    return node.add(Scatter(mode=ScatterMode.ND, reduction=_reduction(node)), node[0], node[1], node[2])


@operator("TensorScatter")
def tensor_scatter(node: Node) -> NodeInput:
    """KV cache update."""
    cache, update = node[0], node[1]
    modes = {"linear": KVCacheMode.LINEAR, "circular": KVCacheMode.CIRCULAR}
    layer = KVCacheUpdate(
        cache_mode=modes[node.choice("mode", "linear", list(modes))],
        axis=positive_axis(node, node.get_int("axis", -2), cache.rank),
    )
    indices = node.input(2) or expand(node, node.array([0], np.int64), lengths_of(node, cache)[:1])
    return node.add(layer, cache, update, indices)


@operator("OneHot")
def one_hot(node: Node) -> NodeInput:
    """One-hot."""
    indices, depth, values = node[0], node[1], node[2]
    if indices.dtype not in _INDEX_TYPES:
        indices = cast(node, indices, DataType.INT64)
    if depth.dtype not in _INDEX_TYPES:
        depth = cast(node, depth, DataType.INT64)
    axis = positive_axis(node, node.get_int("axis", -1), indices.rank + 1)
    return node.add(OneHot(axis=axis), indices, values, depth)


@operator("NonZero")
def non_zero(node: Node) -> NodeInput:
    """Non-zero."""
    return node.add(NonZero(indices_type=DataType.INT64), node[0])


@operator("Compress")
def compress(node: Node) -> NodeInput:
    """A gather at the indices where the condition is not zero."""
    x = node[0]
    axis = node.get_int("axis", 0)
    if not node.has("axis"):
        x = reshape_to(node, x, node.array([-1], "int64"), allow_zero=False)
    indices = node.add(NonZero(indices_type=DataType.INT64), node[1])
    return node.add(Gather(axis=positive_axis(node, axis, x.rank)), x, squeeze(node, indices, (0,)))


@operator("Unique")
def unique(node: Node) -> list[NodeInput]:
    """The layer plugin `Unique`."""
    return add_plugin(node, "Unique", {"sorted": 1, **node.fields()}, node[0])


# Detection ------------------------------------------------------------------------------------------------------------


_EVERY_SCORE = float(np.finfo(np.float32).min)


@operator("NonMaxSuppression")
def non_max_suppression(node: Node) -> NodeInput:
    """NMS."""
    scores = transpose(node, node[1], (0, 2, 1))
    is_centered = bool(node.get_int("center_point_box", 0))
    layer = Nms(
        bounding_box_format=BoundingBoxFormat.CENTER_SIZES if is_centered else BoundingBoxFormat.CORNER_PAIRS,
        topk_box_limit=None,
        indices_type=DataType.INT64,
    )
    count = node.input(2) or node.array(0, np.int64)
    overlap = node.input(3) or node.array(0.0, np.float32)
    least = node.input(4) or node.array(_EVERY_SCORE, np.float32)
    return node.add(layer, node[0], scores, count, overlap, least)


@operator("RoiAlign")
def roi_align(node: Node) -> NodeInput:
    """The layer plugin `RoiAlign`."""
    return _roi_align(node, "output_half_pixel")


@operator("RoiAlign", since=16)
def roi_align_with_half_pixels(node: Node) -> NodeInput:
    """The layer plugin `RoiAlign`."""
    return _roi_align(node, "half_pixel")


def _roi_align(node: Node, default: str) -> NodeInput:
    fields = {
        "mode": node.choice("mode", "avg", ("avg", "max")),
        "output_height": node.get_int("output_height", 1),
        "output_width": node.get_int("output_width", 1),
        "sampling_ratio": node.get_int("sampling_ratio", 0),
        "spatial_scale": node.get_float("spatial_scale", 1.0),
        "coordinate_transformation_mode": node.choice(
            "coordinate_transformation_mode", default, ("half_pixel", "output_half_pixel")
        ),
    }
    return add_plugin(node, "RoiAlign", fields, node[0], node[1], node[2])[0]
