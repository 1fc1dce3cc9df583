"""A grouped deconvolution as a dense one."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from dryfit.onnx.editing.edit import edit
from dryfit.onnx.editing.model_graph import ModelGraph, attribute


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
