"""What a convolution or a deconvolution computes as well.

Fully connected layers, slices with steps, and moves between places and channels.
"""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, helper

from dryfit.network.tensor import Array
from dryfit.onnx.editing.edit import edit
from dryfit.onnx.editing.model_graph import ModelGraph, attribute
from dryfit.onnx.editing.parts import is_floating, keeps_batch, reshape_node


@edit(
    "gemm-convolution",
    title="flatten and Gemm as a convolution",
    cures=[
        "fully_connected.flattened",
        "fully_connected.cbuf",
        "matrix_multiply.rank",
        "shuffle.rank",
        "shuffle.reshaped_rank",
        "elementwise.rank",
        "activation.rank",
        "softmax.rank",
        "unary.rank",
    ],
    changes="Gemm, and MatMul of a matrix with a constant one (and the Add of a bias behind it), become a Conv: 1x1, "
    "or HxW where the matrix was flattened from N x C x H x W. Layers that take element by element, and a Softmax, "
    "behind it then have rank 4 too, and the flattening moves behind them",
    source="NVIDIA Deep-Learning-Accelerator-SW, operators: Gemm; both add up the same products",
)
def gemm_convolution(graph: ModelGraph, node: NodeProto) -> bool:
    """See `changes`."""
    if node.op_type not in ("Gemm", "MatMul") or not is_floating(graph, node.input[0]):
        return False
    inputs = graph.shape_behind_batch(node.input[0], rank=2)
    matrix = graph.constant(node.input[1])
    if inputs is None or matrix is None or matrix.ndim != 2:
        return False
    last, bias = node, None
    if node.op_type == "Gemm":
        if attribute(node, "transA", 0):
            return False
        weights = matrix if attribute(node, "transB", 0) else matrix.T
        weights = _scaled(weights, attribute(node, "alpha", 1.0))
        if len(node.input) > 2 and node.input[2]:
            bias = _bias(graph.constant(node.input[2]), len(weights))
            if bias is None:
                return False
            bias = _scaled(bias, attribute(node, "beta", 1.0))
    else:
        weights = matrix.T
        last, bias = _bias_behind(graph, node, len(weights))
    if weights.shape[1] != inputs[0]:
        return False
    _replace(graph, node, last, weights, bias)
    return True


def _replace(graph: ModelGraph, node: NodeProto, last: NodeProto, weights: Array, bias: Array | None) -> None:
    name = node.name or "gemm"
    outputs = len(weights)
    flatten = graph.producer(node.input[0])
    source = None
    if flatten is not None and keeps_batch(graph, flatten):
        source = graph.shape_behind_batch(flatten.input[0], rank=4)
    new: list[NodeProto] = []
    if flatten is not None and source is not None:
        x, window = flatten.input[0], source
    else:
        window = (weights.shape[1], 1, 1)
        new.append(reshape_node(graph, node.input[0], window, name=f"{name}_lifted"))
        x = new[0].output[0]
    constants = [graph.add_constant(f"{name}_kernel", weights.reshape(outputs, *window))]
    if bias is not None:
        constants.append(graph.add_constant(f"{name}_bias", bias))
    new.append(graph.new_node("Conv", [x, *constants], name=f"{name}_convolution", kernel_shape=window[1:]))
    convolution = new[-1]
    new.append(reshape_node(graph, convolution.output[0], (outputs,), name=f"{name}_flat", output=last.output[0]))
    if last is not node:
        graph.replace(last, [])
    graph.replace(node, new)
    # The user looks for his layer, and not for the reshape behind it.
    convolution.name, new[-1].name = new[-1].name, convolution.name


def _scaled(array: Array, factor: float) -> Array:
    return array if factor == 1.0 else (array.astype(np.float32) * np.float32(factor)).astype(array.dtype)


def _bias(values: Array | None, outputs: int) -> Array | None:
    """One value an output, or None where the constant is something else."""
    if values is None or values.size not in (1, outputs) or (values.ndim and values.shape[-1] != values.size):
        return None
    return np.broadcast_to(values.reshape(-1), (outputs,))


def _bias_behind(graph: ModelGraph, node: NodeProto, outputs: int) -> tuple[NodeProto, Array | None]:
    """(the last node that the convolution stands for, the bias that it adds)."""
    if not graph.has_one_use(node.output[0]):
        return node, None
    (follower,) = graph.consumers(node.output[0])
    if follower.op_type != "Add" or list(follower.input).count(node.output[0]) != 1:
        return node, None
    other = next(name for name in follower.input if name != node.output[0])
    bias = _bias(graph.constant(other), outputs)
    return (node, None) if bias is None else (follower, bias)


LARGEST_KERNEL = 32


@edit(
    "strided-slice-convolution",
    title="slice with steps as a depthwise convolution",
    cures=["slice.stride", "slice.software"],
    changes="Slice of rank 4 along H and W with constant bounds and a step above 1, up to the end of the axis, becomes "
    "a depthwise Conv with that stride whose kernel has one 1, where the slice begins",
    source="products with 1 keep a number and products with 0 drop it; numbers that are not finite are not kept apart",
)
def strided_slice_convolution(graph: ModelGraph, node: NodeProto) -> bool:
    """See `changes`."""
    if node.op_type != "Slice" or not is_floating(graph, node.input[0]):
        return False
    shape, result = (graph.shape_behind_batch(name, rank=4) for name in (node.input[0], node.output[0]))
    places = _places(graph, node)
    if shape is None or result is None or places is None or shape[0] != result[0]:
        return False
    starts, steps = [0, 0], [1, 1]
    for axis, (start, step) in places.items():
        extent = (0, 0, *shape[1:])[axis]
        if axis not in (2, 3) or step < 1:
            return False
        starts[axis - 2], steps[axis - 2] = min(max(start + extent if start < 0 else start, 0), extent), step
    reached = [-(-(extent - start) // step) for extent, start, step in zip(shape[1:], starts, steps, strict=True)]
    if max(steps) == 1 or reached != list(result[1:]) or max(starts) >= LARGEST_KERNEL:
        return False
    kernel = np.zeros(
        (shape[0], 1, starts[0] + 1, starts[1] + 1), helper.tensor_dtype_to_np_dtype(graph.data_type(node.input[0]))
    )
    kernel[:, :, -1, -1] = 1
    name = node.name or "slice"
    new = graph.new_node(
        "Conv",
        [node.input[0], graph.add_constant(f"{name}_kernel", kernel)],
        name=f"{name}_convolution",
        output=node.output[0],
        kernel_shape=kernel.shape[2:],
        strides=steps,
        group=shape[0],
    )
    graph.replace(node, [new])
    return True


def _places(graph: ModelGraph, node: NodeProto) -> dict[int, tuple[int, int]] | None:
    """Axis to (start, step); None where they are computed."""
    if graph.opset < 10:
        return None
    values = [graph.constant(name) if name else None for name in node.input[1:]]
    if len(values) < 4 or any(value is None for value in values):
        return None
    starts, _, axes, steps = ([int(one) for one in value.reshape(-1)] for value in values if value is not None)
    return {axis % 4: (start, step) for axis, start, step in zip(axes, starts, steps, strict=True)}


LARGEST_BLOCK_OF_PLACES = 8


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
    if shape is None or not is_floating(graph, node.input[0]) or not 1 < block <= LARGEST_BLOCK_OF_PLACES:
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


LARGEST_BLOCK_OF_CHANNELS = 32
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
    if (
        shape is None
        or not is_floating(graph, x)
        or shape[0] % (block * block)
        or not 1 < block <= LARGEST_BLOCK_OF_CHANNELS
    ):
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
