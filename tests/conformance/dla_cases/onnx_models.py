"""Small ONNX models in a few words, for cases that were published as one operator and its shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Shape = Sequence[int]


def node(operator: str, inputs: str, output: str, **attributes: object) -> onnx.NodeProto:
    """A node named after its output; `inputs` are separated by spaces."""
    return helper.make_node(operator, inputs.split(), output.split(), name=output.split(maxsplit=1)[0], **attributes)


def weights(*shape: int) -> np.ndarray:
    """A constant of this shape, zero throughout: no verdict on a convolution depends on its values."""
    return np.zeros(shape, np.float32)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Shape],
    constants: Mapping[str, np.ndarray] | None = None,
    *,
    input_type: int = TensorProto.FLOAT,
    opset: int = 17,
) -> onnx.ModelProto:
    """A model of these nodes; the outputs of the last one are the model's."""
    graph = helper.make_graph(
        nodes,
        "case",
        [helper.make_tensor_value_info(name, input_type, list(shape)) for name, shape in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in nodes[-1].output],
        [numpy_helper.from_array(values, name) for name, values in (constants or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def convolution(
    channels: int, maps: int, kernel: int, extent: tuple[int, int], *, dilation: int = 1, stride: int = 1, pads: int = 0
) -> onnx.ModelProto:
    """One convolution `y` of an image of these channels and height and width."""
    attributes = {
        "kernel_shape": [kernel] * 2,
        "dilations": [dilation] * 2,
        "strides": [stride] * 2,
        "pads": [pads] * 4,
    }
    return model(
        [node("Conv", "x w", "y", **attributes)],
        {"x": (1, channels, *extent)},
        {"w": weights(maps, channels, kernel, kernel)},
    )
