"""A fully connected layer as a convolution."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from dryfit.onnx.editing.edit import edit
from dryfit.onnx.editing.model_graph import Array, ModelGraph, attribute
from dryfit.onnx.editing.parts import is_floating
from dryfit.onnx.editing.reshapes import keeps_batch, reshape_node


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
