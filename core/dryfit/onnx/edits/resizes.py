"""Resizes by whole scales and with asymmetric coordinates."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, helper

from dryfit.onnx.editing.edit import edit
from dryfit.onnx.editing.model_graph import ModelGraph, attribute

_ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil")


@edit(
    "resize-sampling",
    title="nearest neighbours as asymmetric coordinates, rounded down",
    cures=["resize.nearest_sampling", "resize.sampling_8_3"],
    changes="Resize of rank 4 to the nearest neighbour with half-pixel coordinates and rounding to the nearest, and "
    "whole scales, becomes one with asymmetric coordinates that are rounded down",
    source="for a whole scale s and 0 <= r < s, (q * s + r + 0.5) / s - 0.5 is less than half away from q",
)
def resize_sampling(graph: ModelGraph, node: NodeProto) -> bool:
    """See `changes`."""
    if node.op_type != "Resize" or graph.opset < 11 or attribute(node, "mode", "nearest") != "nearest":
        return False
    shape, result = (graph.shape_behind_batch(name, rank=4) for name in (node.input[0], node.output[0]))
    mode = attribute(node, "coordinate_transformation_mode", "half_pixel")
    if shape is None or result is None or attribute(node, "nearest_mode", _ROUNDINGS[0]) not in _ROUNDINGS:
        return False
    # PyTorch's form differs for an output extent of 1, where there is one element to take: the same for a scale of 1.
    if mode not in ("half_pixel", "pytorch_half_pixel"):
        return False
    if shape[0] != result[0] or any(out % extent for extent, out in zip(shape[1:], result[1:], strict=True)):
        return False
    if not _has_whole_scales(graph, node, shape, result):
        return False
    changed = ("coordinate_transformation_mode", "nearest_mode")
    kept = [type(one).FromString(one.SerializeToString()) for one in node.attribute if one.name not in changed]
    del node.attribute[:]
    node.attribute.extend(kept)
    node.attribute.append(helper.make_attribute("coordinate_transformation_mode", "asymmetric"))
    node.attribute.append(helper.make_attribute("nearest_mode", "floor"))
    graph.changed()
    return True


def _has_whole_scales(graph: ModelGraph, node: NodeProto, shape: tuple[int, ...], result: tuple[int, ...]) -> bool:
    """Whether the scales are those of the extents: 4.9 would give as many elements as 4 of an extent of 1."""
    name = node.input[2] if len(node.input) > 2 else ""
    scales = graph.constant(name) if name else None
    if scales is None or not scales.size:
        return not name and attribute(node, "keep_aspect_ratio_policy", "stretch") == "stretch"
    ratios = [out / extent for extent, out in zip(shape, result, strict=True)]
    return [float(scale) for scale in scales[-3:]] == ratios and attribute(node, "axes") is None


@edit(
    "resize-scales",
    title="resize to a size as a resize by whole scales",
    cures=["resize.scales", "resize.one_size"],
    changes="Resize with sizes, or with scales that are computed, becomes one with constant scales where each output "
    "extent is a whole multiple of the input's, and batch and channels stay. H and W have to be known",
    source="ONNX Resize: scales are the output's extents by the input's",
)
def resize_scales(graph: ModelGraph, node: NodeProto) -> bool:
    """See `changes`."""
    if node.op_type != "Resize" or graph.opset < 11:
        return False
    shape, result = (graph.shape_behind_batch(name, rank=4) for name in (node.input[0], node.output[0]))
    scales_given = graph.constant(node.input[2]) if len(node.input) > 2 and node.input[2] else None
    if shape is None or result is None or (scales_given is not None and scales_given.size):
        return False
    if attribute(node, "keep_aspect_ratio_policy", "stretch") != "stretch" or shape[0] != result[0]:
        return False
    if attribute(node, "coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize":
        return False
    if any(out % extent for extent, out in zip(shape[1:], result[1:], strict=True)):
        return False
    name = node.name or "resize"
    values = [1.0, 1.0, *(out // extent for extent, out in zip(shape[1:], result[1:], strict=True))]
    scales = graph.add_constant(f"{name}_scales", np.asarray(values, np.float32))
    # Up to opset 12 the region is not optional, and an empty one stands for none.
    region = "" if graph.opset >= 13 else graph.add_constant(f"{name}_region", np.zeros(0, np.float32))
    kept = [one for one in node.attribute if one.name not in ("axes", "keep_aspect_ratio_policy")]
    new = graph.new_node("Resize", [node.input[0], region, scales], name=f"{name}_scaled", output=node.output[0])
    new.attribute.extend(kept)
    graph.replace(node, [new])
    return True
