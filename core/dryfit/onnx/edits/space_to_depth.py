"""Places of a grid moved into channels as a convolution."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, helper

from dryfit.onnx.editing.edit import edit
from dryfit.onnx.editing.model_graph import ModelGraph, attribute
from dryfit.onnx.editing.parts import is_floating

LARGEST_BLOCK = 8


@edit(
    "space-to-depth",
    title="space to depth as a convolution",
    cures=["shuffle.rank", "shuffle.reshaped_rank", "shuffle.software"],
    changes="SpaceToDepth becomes a Conv with stride and kernel of the block's size (at most 8), whose kernel is 1 "
    "where a place goes to a channel. All extents but the batch have to be known",
    source="NVIDIA Deep-Learning-Accelerator-SW, operators: SpaceToDepth is to be rebuilt; each product is with 1 or 0",
)
def space_to_depth(graph: ModelGraph, node: NodeProto) -> bool:
    """See `changes`."""
    shape = graph.shape_behind_batch(node.input[0], rank=4) if node.op_type == "SpaceToDepth" else None
    block = int(attribute(node, "blocksize", 0))
    if shape is None or not is_floating(graph, node.input[0]) or not 1 < block <= LARGEST_BLOCK:
        return False
    # Channel (row * block + column) * C + c of the output is channel c at that row and column of the block.
    places = np.eye(shape[0] * block * block).reshape(-1, block, block, shape[0]).transpose(0, 3, 1, 2)
    dtype = helper.tensor_dtype_to_np_dtype(graph.data_type(node.input[0]))
    name = node.name or "space_to_depth"
    new = graph.new_node(
        "Conv",
        [node.input[0], graph.add_constant(f"{name}_kernel", places.astype(dtype))],
        name=f"{name}_convolution",
        output=node.output[0],
        kernel_shape=[block, block],
        strides=[block, block],
    )
    graph.replace(node, [new])
    return True
