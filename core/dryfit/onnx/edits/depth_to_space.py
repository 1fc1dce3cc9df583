"""Channels moved into a finer grid (pixel shuffle) as a deconvolution."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, helper

from dryfit.onnx.editing.edit import edit
from dryfit.onnx.editing.model_graph import Array, ModelGraph, attribute
from dryfit.onnx.editing.parts import is_floating

LARGEST_BLOCK = 32
_ORDERS = {"CRD": ([0, 1, 4, 2, 5, 3], 2), "DCR": ([0, 3, 4, 1, 5, 2], 1)}
"""Mode to (permutation of the six axes, the first of the two axes that hold the block)."""


@edit(
    "depth-to-space",
    title="depth to space (pixel shuffle) as a deconvolution",
    cures=["shuffle.rank", "shuffle.reshaped_rank", "shuffle.software"],
    changes="DepthToSpace, and the Reshape, Transpose and Reshape that PyTorch's pixel shuffle is exported as, become "
    "a ConvTranspose with stride and kernel of the block's size, whose kernel is 1 where a channel goes to a place. "
    "All extents but the batch have to be known",
    source="NVIDIA Deep-Learning-Accelerator-SW, operators: DepthToSpace is to be rebuilt; each product is with 1 or 0",
)
def depth_to_space(graph: ModelGraph, node: NodeProto) -> bool:
    """See `changes`."""
    found = _operator(node) or _exported(graph, node)
    if found is None:
        return False
    x, block, mode = found
    shape = graph.shape_behind_batch(x, rank=4)
    if shape is None or not is_floating(graph, x) or shape[0] % (block * block) or not 1 < block <= LARGEST_BLOCK:
        return False
    name = node.name or "depth_to_space"
    kernel = _kernel(shape[0], block, mode).astype(helper.tensor_dtype_to_np_dtype(graph.data_type(x)))
    new = graph.new_node(
        "ConvTranspose",
        [x, graph.add_constant(f"{name}_kernel", kernel)],
        name=f"{name}_deconvolution",
        output=node.output[0],
        kernel_shape=[block, block],
        strides=[block, block],
    )
    graph.replace(node, [new])
    return True


def _kernel(channels: int, block: int, mode: str) -> Array:
    """`[channels, channels / block^2, block, block]`: 1 where an input channel goes to an output channel and place.

    Source: ONNX DepthToSpace: CRD reads the channels as (C, row, column), DCR as (row, column, C).
    """
    outputs = channels // (block * block)
    identity = np.eye(channels)
    if mode == "CRD":
        return identity.reshape(channels, outputs, block, block)
    return identity.reshape(channels, block, block, outputs).transpose(0, 3, 1, 2)


def _operator(node: NodeProto) -> tuple[str, int, str] | None:
    """(input, block, mode) of a DepthToSpace."""
    if node.op_type != "DepthToSpace":
        return None
    return node.input[0], int(attribute(node, "blocksize", 0)), attribute(node, "mode", "DCR")


def _exported(graph: ModelGraph, node: NodeProto) -> tuple[str, int, str] | None:
    """(input, block, mode) of a Reshape behind a Transpose behind a Reshape that move channels into a finer grid."""
    transpose = graph.producer(node.input[0]) if node.op_type == "Reshape" else None
    reshape = graph.producer(transpose.input[0]) if transpose is not None and transpose.op_type == "Transpose" else None
    if transpose is None or reshape is None or reshape.op_type != "Reshape":
        return None
    source = graph.shape_behind_batch(reshape.input[0], rank=4)
    split = graph.shape_behind_batch(reshape.output[0], rank=6)
    result = graph.shape_behind_batch(node.output[0], rank=4)
    if source is None or split is None or result is None:
        return None
    for mode, (order, first) in _ORDERS.items():
        block = split[first - 1]
        finer = (source[0] // block**2, source[1] * block, source[2] * block)
        whole = split[first] == block and split[-2:] == source[1:] and result == finer
        if whole and attribute(transpose, "perm") == order:
            return reshape.input[0], block, mode
    return None
