"""Operators that move elements or tell shapes: shuffles, concatenations, shape."""

from __future__ import annotations

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.generators import ShapeLayer
from dryfit.network.layers.movement import Identity, ReverseSequence
from dryfit.onnx.composition import axes_of, cast, concatenate, positive_axes, positive_axis
from dryfit.onnx.node import Node
from dryfit.onnx.problems import ErrorCode
from dryfit.onnx.registry import operator
from dryfit.onnx.shapes import (
    combine,
    flatten_to_matrix,
    lengths_of,
    product,
    reshape,
    reshape_to,
    squeeze,
    transpose,
    unsqueeze,
    vector_of,
)
from dryfit.onnx.tensors import NodeInput


@operator("Identity")
def identity(node: Node) -> NodeInput:
    """Identity."""
    return node.add(Identity(), node[0])


@operator("Dropout")
def dropout(node: Node) -> list[NodeInput]:
    """Nothing: it does something in training only. The mask is a constant."""
    training = node.constant(2, "The training mode")
    if training is not None and bool(training.reshape(())):
        raise node.refusal("Dropout in training mode is not supported", remedy="Export the model in inference mode")
    if len(node.proto.output) < 2 or not node.proto.output[1]:
        return [node[0]]
    shape = node.static_shape(node[0], "The input of a Dropout whose mask is used")
    return [node[0], node.array(np.broadcast_to(np.True_, shape))]


@operator("Reshape")
def reshape_operator(node: Node) -> NodeInput:
    """Shuffle."""
    return reshape_to(node, node[0], node[1], allow_zero=bool(node.get_int("allowzero", 0)))


@operator("Flatten")
def flatten(node: Node) -> NodeInput:
    """Shuffle."""
    x, axis = node[0], node.get_int("axis", 1)
    if not -x.rank <= axis <= x.rank:
        raise node.refusal(
            "The axis must be an axis of the input", code=ErrorCode.INVALID_VALUE, found=axis, remedy="Fix the axis"
        )
    return flatten_to_matrix(node, x, axis + x.rank if axis < 0 else axis)


@operator("Transpose")
def transpose_operator(node: Node) -> NodeInput:
    """Shuffle."""
    x = node[0]
    return transpose(node, x, node.get_ints("perm") or tuple(reversed(range(x.rank))))


@operator("Squeeze")
def squeeze_operator(node: Node) -> NodeInput:
    """Shuffle, or squeeze where several dimensions are dynamic."""
    x, axes = node[0], axes_of(node, 1)
    if axes is None:
        axes = tuple(
            axis for axis, extent in enumerate(node.static_shape(x, "The input of Squeeze without axes")) if extent == 1
        )
    return squeeze(node, x, positive_axes(node, axes, x.rank))


@operator("Unsqueeze")
def unsqueeze_operator(node: Node) -> NodeInput:
    """Shuffle, or unsqueeze where several dimensions are dynamic."""
    x, axes = node[0], axes_of(node, 1) or ()
    return unsqueeze(node, x, positive_axes(node, axes, x.rank + len(axes)))


@operator("Concat")
def concat(node: Node) -> NodeInput:
    """Concatenation."""
    operands = [node[index] for index in range(len(node.inputs))]
    return concatenate(node, operands, positive_axis(node, node.get_int("axis", 1), node[0].rank))


def _blocks(node: Node, x: NodeInput) -> int:
    size = node.get_int("blocksize", 0)
    if x.rank != 4 or x.shape[1] < 0 or size < 1:
        raise node.refusal(
            "The input must be NCHW with a static number of channels, and the block size positive",
            code=ErrorCode.UNSUPPORTED_NODE_SHAPE,
            found=f"{x.shape}, block size {size}",
            remedy="Set a fixed shape, or correct the block size",
        )
    return size


@operator("DepthToSpace")
def depth_to_space(node: Node) -> NodeInput:
    """Two shuffles."""
    x = node[0]
    size = _blocks(node, x)
    batch, _, height, width = lengths_of(node, x)
    depth = x.shape[1] // (size * size)
    if node.choice("mode", "DCR", ("DCR", "CRD")) == "DCR":
        split_up, order = [batch, size, size, depth, height, width], (0, 3, 4, 1, 5, 2)
    else:
        split_up, order = [batch, depth, size, size, height, width], (0, 1, 4, 2, 5, 3)
    moved = transpose(node, reshape(node, x, split_up), order)
    return reshape(node, moved, [batch, depth, product(node, [height, size]), product(node, [width, size])])


@operator("SpaceToDepth")
def space_to_depth(node: Node) -> NodeInput:
    """Two shuffles."""
    x = node[0]
    size = _blocks(node, x)
    batch, channels, height, width = lengths_of(node, x)
    rows, columns = (combine(node, ElementWiseOperation.FLOOR_DIV, extent, size) for extent in (height, width))
    order = (0, 3, 5, 1, 2, 4) if node.choice("mode", "DCR", ("DCR", "CRD")) == "DCR" else (0, 1, 3, 5, 2, 4)
    moved = transpose(node, reshape(node, x, [batch, channels, rows, size, columns, size]), order)
    return reshape(node, moved, [batch, x.shape[1] * size * size, rows, columns])


@operator("Shape")
def shape(node: Node) -> NodeInput:
    """Shape; a slice of it where only some axes are asked for."""
    x = node[0]
    first, last, _ = slice(node.get_int("start", 0), node.get_int("end", x.rank)).indices(x.rank)
    if (first, last) == (0, x.rank):
        return node.add(ShapeLayer(), x)
    return vector_of(node, lengths_of(node, x)[first:last])


@operator("Size")
def size(node: Node) -> NodeInput:
    """The product of the shape."""
    count = product(node, lengths_of(node, node[0]))
    return node.array(count, np.int64) if isinstance(count, int) else squeeze(node, count, (0,))


@operator("ReverseSequence")
def reverse_sequence(node: Node) -> NodeInput:
    """Reverse sequence."""
    x = node[0]
    layer = ReverseSequence(
        batch_axis=positive_axis(node, node.get_int("batch_axis", 1), x.rank),
        sequence_axis=positive_axis(node, node.get_int("time_axis", 0), x.rank),
    )
    return node.add(layer, x, cast(node, node[1], DataType.INT64))
