"""Deconvolutions without groups and without padding."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

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
