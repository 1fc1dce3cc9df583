"""Small networks for benchmarks: transformers with dynamic shapes as exporters write them, images of other sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HEADS, VOCABULARY, POSITIONS, CLASSES = 4, 200, 512, 10


class _Graph:
    """Nodes and constants in the order in which they are asked for; everything is named by its number."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, Any] = {}
        self._random = np.random.default_rng(0)

    def constant(self, value: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value)
        return name

    def weights(self, *shape: int) -> str:
        return self.constant((self._random.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32))

    def __call__(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], f"{kind}_{name}", **attributes))
        return name


def transformer(layers: int, width: int, *, has_norm: bool) -> onnx.ModelProto:
    """A decoder of `ids` and `mask` INT64 `[B, S]`, which gives `[B, 10]` of the last valid token of each sequence."""
    graph = _Graph()
    zero, one, axis0, axis1 = (graph.constant(np.array(value)) for value in (0, 1, [0], [1]))
    x = graph("Gather", graph.weights(VOCABULARY, width), "ids", axis=0)
    shape = graph("Shape", "ids")
    batch, length = graph("Gather", shape, zero, axis=0), graph("Gather", shape, one, axis=0)
    places = graph("Range", zero, length, one)
    x = graph("Add", x, graph("Gather", graph.weights(POSITIONS, width), places, axis=0))
    causal = graph("LessOrEqual", graph("Unsqueeze", places, axis0), graph("Unsqueeze", places, axis1))
    given = graph("Unsqueeze", graph("Cast", "mask", to=TensorProto.BOOL), graph.constant(np.array([1, 2])))
    nothing = graph.constant(np.float32(0))
    bias = graph("Where", graph("And", causal, given), nothing, graph.constant(np.float32(-np.inf)))
    ends = [graph("Unsqueeze", extent, axis0) for extent in (batch, length)]
    split = graph("Concat", *ends, graph.constant(np.array([HEADS, width // HEADS])), axis=0)
    joined = graph("Concat", *ends, graph.constant(np.array([width])), axis=0)
    for _ in range(layers):
        y = _normalized(graph, x, width, has_norm=has_norm)
        query, key, value = (
            graph("Transpose", graph("Reshape", _linear(graph, y, width, width), split), perm=order)
            for order in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
        )
        scores = graph("Mul", graph("MatMul", query, key), graph.constant(np.float32((width // HEADS) ** -0.5)))
        shares = graph("Softmax", graph("Add", scores, bias), axis=-1)
        shares = graph("Where", graph("IsNaN", shares), nothing, shares)
        seen = graph("Reshape", graph("Transpose", graph("MatMul", shares, value), perm=[0, 2, 1, 3]), joined)
        x = graph("Add", x, _linear(graph, seen, width, width))
        wide = _linear(graph, _normalized(graph, x, width, has_norm=has_norm), width, 4 * width)
        error = graph("Erf", graph("Div", wide, graph.constant(np.float32(2**0.5))))
        wide = graph("Mul", wide, graph("Add", error, graph.constant(np.float32(1))))
        wide = graph("Mul", wide, graph.constant(np.float32(0.5)))
        x = graph("Add", x, _linear(graph, wide, 4 * width, width))
    x = _normalized(graph, x, width, has_norm=has_norm)
    last = graph("Sub", graph("ReduceSum", "mask", axis1, keepdims=0), one)
    sequences = graph("Unsqueeze", graph("Range", zero, batch, one), axis1)
    x = graph("GatherND", x, graph("Concat", sequences, graph("Unsqueeze", last, axis1), axis=1))
    graph("MatMul", x, graph.weights(width, CLASSES))
    return _model(graph)


def _linear(graph: _Graph, x: str, depth: int, columns: int) -> str:
    product = graph("MatMul", x, graph.weights(depth, columns))
    return graph("Add", product, graph.constant(np.zeros(columns, np.float32)))


def _normalized(graph: _Graph, x: str, width: int, *, has_norm: bool) -> str:
    scale, shift = graph.constant(np.ones(width, np.float32)), graph.constant(np.zeros(width, np.float32))
    if has_norm:
        return graph("LayerNormalization", x, scale, shift)
    distance = graph("Sub", x, graph("ReduceMean", x, axes=[-1]))
    square = graph("Pow", distance, graph.constant(np.float32(2)))
    variance = graph("Add", graph("ReduceMean", square, axes=[-1]), graph.constant(np.float32(1e-5)))
    return graph("Add", graph("Mul", graph("Div", distance, graph("Sqrt", variance)), scale), shift)


def _model(graph: _Graph) -> onnx.ModelProto:
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["B", "S"]) for name in ("ids", "mask")]
    output = graph.nodes[-1].output[0]
    made = helper.make_graph(
        graph.nodes,
        "transformer",
        inputs,
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["B", CLASSES])],
        [numpy_helper.from_array(value, name) for name, value in graph.constants.items()],
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    return model


def with_image_size(model: onnx.ModelProto, size: int) -> onnx.ModelProto:
    """The same model for square images of another size, with shapes of its outputs left open."""
    for dimension in model.graph.input[0].type.tensor_type.shape.dim[2:]:
        dimension.dim_value = size
    for output in model.graph.output:
        for number, dimension in enumerate(output.type.tensor_type.shape.dim):
            dimension.dim_param = f"{output.name}_{number}"
    del model.graph.value_info[:]
    return model
