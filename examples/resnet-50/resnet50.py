"""Writes ResNet-50 as an ONNX file, with random weights.

`python resnet50.py resnet50.onnx`. The layers are those of torchvision's ResNet-50 as PyTorch exports it, with batch
normalization folded into the convolutions. Placement and estimates depend on shapes only; the classes that random
weights find mean nothing. The README says how to export the trained network.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
"""Channels inside the blocks of a stage, number of blocks, and stride of the first."""

EXPANSION = 4
"""Channels that a block gives, as a multiple of those inside."""


class Graph:
    """The nodes and weights of a graph while it grows, and the tensor at its end."""

    def __init__(self, seed: int) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self._random = np.random.default_rng(seed)

    def add(self, operator: str, name: str, inputs: list[str], **attributes: object) -> str:
        """Add a node with one output, which has its name; returns the name."""
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def weight(self, name: str, shape: tuple[int, ...], deviation: float) -> str:
        """Add a tensor of normally distributed weights; returns its name."""
        values = self._random.standard_normal(shape, np.float32) * np.float32(deviation)
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def convolution(
        self, name: str, tensor: str, channels: tuple[int, int], size: int, stride: int = 1, *, gain: float = 2.0
    ) -> str:
        """Add a convolution whose outputs vary `gain` / 2 times as much as its inputs, where a ReLU is in between."""
        inputs, outputs = channels
        weights = [
            self.weight(f"{name}.weight", (outputs, inputs, size, size), (gain / (inputs * size * size)) ** 0.5),
            self.weight(f"{name}.bias", (outputs,), 0.01),
        ]
        window = {"kernel_shape": [size] * 2, "strides": [stride] * 2, "pads": [size // 2] * 4}
        return self.add("Conv", name, [tensor, *weights], **window)

    def block(self, name: str, tensor: str, channels: tuple[int, int], stride: int) -> str:
        """Add a bottleneck block: 1x1, 3x3 and 1x1 convolutions beside a shortcut."""
        inputs, inner = channels
        outputs = inner * EXPANSION
        inside = self.add("Relu", f"{name}/relu1", [self.convolution(f"{name}/conv1", tensor, (inputs, inner), 1)])
        inside = self.convolution(f"{name}/conv2", inside, (inner, inner), 3, stride)
        inside = self.add("Relu", f"{name}/relu2", [inside])
        inside = self.convolution(f"{name}/conv3", inside, (inner, outputs), 1, gain=0.1)
        if inputs != outputs or stride != 1:
            tensor = self.convolution(f"{name}/downsample", tensor, (inputs, outputs), 1, stride, gain=1.0)
        return self.add("Relu", f"{name}/relu3", [self.add("Add", f"{name}/add", [inside, tensor])])


def resnet50(size: int = 224, classes: int = 1000, seed: int = 50) -> onnx.ModelProto:
    """ResNet-50 for one RGB picture of `size` x `size` pixels, normalized as torchvision does."""
    graph = Graph(seed)
    stem = graph.add("Relu", "relu1", [graph.convolution("conv1", "image", (3, 64), 7, 2)])
    tensor = graph.add("MaxPool", "maxpool", [stem], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for name, channels, stride in _blocks():
        tensor = graph.block(name, tensor, channels, stride)
    features = STAGES[-1][0] * EXPANSION
    tensor = graph.add("GlobalAveragePool", "avgpool", [tensor])
    tensor = graph.add("Flatten", "flatten", [tensor], axis=1)
    weights = [
        graph.weight("fc.weight", (classes, features), features**-0.5),
        graph.weight("fc.bias", (classes,), 0.01),
    ]
    graph.add("Gemm", "logits", [tensor, *weights], transB=1)
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, size, size])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, classes])
    made = helper.make_graph(graph.nodes, "resnet50", [image], [logits], graph.weights)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _blocks() -> Iterator[tuple[str, tuple[int, int], int]]:
    """Name, channels before and inside, and stride of each block."""
    before = STAGES[0][0]
    for stage, (inner, count, stride) in enumerate(STAGES, 1):
        for index in range(count):
            yield f"layer{stage}.{index}", (before, inner), stride if index == 0 else 1
            before = inner * EXPANSION


if __name__ == "__main__":
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "resnet50.onnx")
    onnx.save(resnet50(), path)
    print(f"{path}: ResNet-50 with random weights, {path.stat().st_size / 2**20:.0f} MiB")
