"""Upsampling in forms that devices run: deconvolutions without groups and padding, and resizes by whole factors."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, helper

from dryfit.onnx.editing.edit import edit
from dryfit.onnx.editing.model_graph import ModelGraph, attribute
from dryfit.onnx.editing.parts import slice_node


@edit(
    "deconvolution-groups",
    title="grouped deconvolution as a dense one with zeros",
    cures=["deconvolution.groups"],
    changes="ConvTranspose of several groups becomes one of a single group, whose kernel is zero between the groups: "
    "as many times more multiply-accumulates as there were groups",
    source="products with zero add nothing",
)
def deconvolution_groups(graph: ModelGraph, node: NodeProto) -> bool:
    """See `changes`."""
    groups = attribute(node, "group", 1)
    kernel = graph.constant(node.input[1]) if node.op_type == "ConvTranspose" and groups > 1 else None
    if kernel is None or kernel.ndim != 4 or kernel.shape[0] % groups:
        return False
    inputs, outputs = kernel.shape[0] // groups, kernel.shape[1]
    dense = np.zeros((kernel.shape[0], outputs * groups, *kernel.shape[2:]), kernel.dtype)
    for group in range(groups):
        rows = slice(group * inputs, (group + 1) * inputs)
        dense[rows, group * outputs : (group + 1) * outputs] = kernel[rows]
    node.input[1] = graph.add_constant(f"{node.name or 'deconvolution'}_dense", dense)
    kept = [one for one in node.attribute if one.name != "group"]
    copies = [type(one).FromString(one.SerializeToString()) for one in kept]
    del node.attribute[:]
    node.attribute.extend(copies)
    graph.changed()
    return True


@edit(
    "deconvolution-padding",
    title="padding of a deconvolution as a slice behind it",
    cures=["deconvolution.padding"],
    changes="ConvTranspose with pads, output_shape or automatic padding becomes one without padding and a Slice that "
    "takes the same part of its output. H and W have to be known; an output_padding that reaches beyond the unpadded "
    "output is left alone",
    source="ONNX ConvTranspose: padding is what is cut off the full output",
)
def deconvolution_padding(graph: ModelGraph, node: NodeProto) -> bool:
    """See `changes`."""
    if node.op_type != "ConvTranspose":
        return False
    shape = graph.shape_behind_batch(node.input[0], rank=4)
    result = graph.shape_behind_batch(node.output[0], rank=4)
    weights = graph.shape(node.input[1])
    if shape is None or result is None or weights is None or None in weights[2:]:
        return False
    kernel = attribute(node, "kernel_shape") or [extent or 0 for extent in weights[2:]]
    strides, dilations = (attribute(node, name) or [1, 1] for name in ("strides", "dilations"))
    full = [
        (extent - 1) * stride + (size - 1) * dilation + 1
        for extent, stride, size, dilation in zip(shape[1:], strides, kernel, dilations, strict=True)
    ]
    starts = _starts(node, full, result[1:])
    ends = [start + extent for start, extent in zip(starts, result[1:], strict=True)]
    is_inside = all(start >= 0 and end <= extent for start, end, extent in zip(starts, ends, full, strict=True))
    if not is_inside or full == list(result[1:]):
        return False
    name = node.name or "deconvolution"
    whole = graph.new_node(
        "ConvTranspose",
        list(node.input),
        name=f"{name}_full",
        kernel_shape=kernel,
        strides=strides,
        dilations=dilations,
        group=attribute(node, "group"),
    )
    part = slice_node(graph, whole.output[0], starts, ends, (2, 3), name=f"{name}_part", output=node.output[0])
    graph.replace(node, [whole, part])
    whole.name, part.name = part.name, whole.name
    return True


def _starts(node: NodeProto, full: list[int], wanted: tuple[int, ...]) -> list[int]:
    """What is cut off before each axis. Source: ONNX ConvTranspose, the formulas for `output_shape` and `auto_pad`."""
    automatic = attribute(node, "auto_pad", "NOTSET")
    if automatic == "VALID":
        return [0, 0]
    if automatic == "NOTSET" and not attribute(node, "output_shape"):
        return list(attribute(node, "pads") or [0, 0, 0, 0])[:2]
    more = attribute(node, "output_padding") or [0, 0]
    totals = [extent + extra - want for extent, extra, want in zip(full, more, wanted, strict=True)]
    return [total // 2 if automatic == "SAME_UPPER" else total - total // 2 for total in totals]


# Resizes --------------------------------------------------------------------------------------------------------------


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
