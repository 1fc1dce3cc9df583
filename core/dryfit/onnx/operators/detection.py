"""Operators on boxes."""

from __future__ import annotations

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.ranking import BoundingBoxFormat, Nms
from dryfit.onnx.composition import add_plugin
from dryfit.onnx.node import Node
from dryfit.onnx.operand import Operand
from dryfit.onnx.registry import operator
from dryfit.onnx.shapes import transpose

_EVERY_SCORE = float(np.finfo(np.float32).min)


@operator("NonMaxSuppression")
def non_max_suppression(node: Node) -> Operand:
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
def roi_align(node: Node) -> Operand:
    """The layer plugin `RoiAlign`."""
    return _roi_align(node, "output_half_pixel")


@operator("RoiAlign", since=16)
def roi_align_with_half_pixels(node: Node) -> Operand:
    """The layer plugin `RoiAlign`."""
    return _roi_align(node, "half_pixel")


def _roi_align(node: Node, default: str) -> Operand:
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
