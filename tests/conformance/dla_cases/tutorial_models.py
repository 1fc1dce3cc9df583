"""The models of NVIDIA-AI-IOT/jetson_dla_tutorial, as torch exports them: with opset 9 the names are those of its logs.

Four convolutions of 64, 128, 256 and 512 channels (3x3, stride 2, padding 1), each with a normalization and a ReLU; a
global average and a linear layer of 10 outputs. The input is N x 3 x 32 x 32 with an open batch.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CHANNELS = (64, 128, 256, 512)
GROUPS = 8


class Graph:
    """Nodes in order, numbered as torch names them: `Conv_0`, `Relu_1`, ..."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self._random = np.random.default_rng(7)

    def add(self, operator: str, *inputs: str, name: str = "", **attributes: object) -> str:
        """Add a node; returns the name of its output."""
        name = name or f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [f"{name}_output"], name=name, **attributes))
        return f"{name}_output"

    def weight(self, name: str, *shape: int) -> str:
        """An initializer of random values."""
        return self.constant(name, self._random.normal(0, 0.1, shape).astype(np.float32))

    def constant(self, name: str, values: np.ndarray) -> str:
        """An initializer."""
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def constant_node(self, values: np.ndarray) -> str:
        """A Constant node, as torch leaves them; they count in the names of the others."""
        return self.add("Constant", value=numpy_helper.from_array(values))

    def model(self, output: str, opset: int) -> onnx.ModelProto:
        """The model, from `input` to `output`."""
        graph = helper.make_graph(
            self.nodes,
            "tutorial",
            [helper.make_tensor_value_info("input", TensorProto.FLOAT, ["batch_size", 3, 32, 32])],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch_size", 10])],
            self.weights,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
        onnx.checker.check_model(model, full_check=True)
        return model


def group_normalization(graph: Graph, x: str, channels: int) -> str:
    """Group normalization as torch exports it up to opset 20: a reshape to the groups, and back to the shape of `x`."""
    name = f"norm{channels}"
    groups = graph.constant_node(np.asarray([0, GROUPS, -1], np.int64))
    grouped = graph.add("Reshape", x, groups)
    ones = graph.constant_node(np.ones(GROUPS, np.float32))
    zeros = graph.constant_node(np.zeros(GROUPS, np.float32))
    normalized = graph.add("InstanceNormalization", grouped, ones, zeros, epsilon=1e-5)
    back = graph.add("Reshape", normalized, graph.add("Shape", x))
    scaled = graph.add("Mul", back, graph.weight(f"{name}.weight", channels, 1, 1))
    return graph.add("Add", scaled, graph.weight(f"{name}.bias", channels, 1, 1))


def batch_normalization(graph: Graph, x: str, channels: int) -> str:
    """Batch normalization as its own node, which torch leaves when it is told not to fold."""
    name = f"norm{channels}"
    parameters = [graph.weight(f"{name}.{one}", channels) for one in ("weight", "bias", "mean")]
    variance = graph.constant(f"{name}.variance", np.full(channels, 0.5, np.float32))
    return graph.add("BatchNormalization", x, *parameters, variance)


def folded(graph: Graph, x: str, channels: int) -> str:
    """Batch normalization that torch folded into the convolution."""
    return x


def tutorial_model(
    normalization: Callable[[Graph, str, int], str], *, pool: str = "GlobalAveragePool", opset: int = 9
) -> onnx.ModelProto:
    """The model with a normalization; `pool` is the operator of the global average.

    Args:
        normalization: adds its nodes, returns the output's name.
        pool: GlobalAveragePool, or AveragePool with the window 2x2 as the tutorial's last step has it.
        opset: of ONNX; torch of the tutorial's time exported 9.
    """
    graph = Graph()
    x, before = "input", 3
    for channels in CHANNELS:
        weight = graph.weight(f"conv{channels}.weight", channels, before, 3, 3)
        bias = graph.weight(f"conv{channels}.bias", channels)
        x = graph.add("Conv", x, weight, bias, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
        x = graph.add("Relu", normalization(graph, x, channels))
        before = channels
    x = graph.add(pool, x) if pool == "GlobalAveragePool" else graph.add(pool, x, kernel_shape=[2, 2])
    shape = graph.add("Shape", x)
    batch = graph.add("Gather", shape, graph.constant_node(np.asarray(0, np.int64)), axis=0)
    if opset < 13:
        batch = graph.add("Unsqueeze", batch, axes=[0])
    else:
        batch = graph.add("Unsqueeze", batch, graph.constant_node(np.asarray([0], np.int64)))
    shape = graph.add("Concat", batch, graph.constant("rest", np.asarray([-1], np.int64)), axis=0)
    x = graph.add("Reshape", x, shape)
    x = graph.add("Gemm", x, graph.weight("linear.weight", 10, 512), graph.weight("linear.bias", 10), transB=1)
    return graph.model(x, opset)
