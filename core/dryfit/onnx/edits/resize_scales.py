"""A resize to a size as a resize by constant scales."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from dryfit.onnx.editing.edit import edit
from dryfit.onnx.editing.model_graph import ModelGraph, attribute


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
