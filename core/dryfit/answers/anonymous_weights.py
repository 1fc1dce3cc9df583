"""Random weights of the same ranges in the place of a model's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

Array = np.ndarray[Any, Any]

KEPT_INPUTS = {
    "QuantizeLinear": (1, 2),
    "DequantizeLinear": (1, 2),
    "QLinearConv": (1, 2, 4, 5, 6, 7),
    "QLinearMatMul": (1, 2, 4, 5, 6, 7),
    "Resize": (1, 2, 3),
    "Upsample": (1,),
    "Clip": (1, 2),
    "Pad": (1, 2, 3),
    "Pow": (1,),
}
"""Inputs of operators that are scales, limits or exponents rather than weights: they decide what a layer is."""


def without_weights(model: onnx.ModelProto, seed: int = 0) -> onnx.ModelProto:
    """Return a copy of a model whose weights are random.

    Each tensor of floating-point constants with more than one value, and each of integers that is dequantized, gets
    normally distributed values of the same mean and deviation, clipped to the same range, whose ends occur: ranges,
    scales and the size of activations stay as they were, and no value but the two ends remains. Shapes, axes, scales
    and scalars stay, since they decide what layers are.

    Args:
        model: an ONNX model with its weights loaded.
        seed: seed of the values; the same model and seed give the same copy.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    generator = np.random.default_rng(seed)
    for graph in _graphs(copy.graph):
        kept, codes = _roles(graph)
        constants = [(one.name, one) for one in graph.initializer]
        for node in graph.node:
            values = [one for one in node.attribute if node.op_type == "Constant" and one.name == "value"]
            constants += [(node.output[0], one.t) for one in values]
        for name, tensor in constants:
            if name in kept:
                continue
            array = numpy_helper.to_array(tensor)
            if array.size < 2 or not (array.dtype.kind == "f" or (array.dtype.kind in "iu" and name in codes)):
                continue
            tensor.CopyFrom(numpy_helper.from_array(_random(array, generator), tensor.name))
    return copy


def _random(array: Array, generator: np.random.Generator) -> Array:
    values = array.astype(np.float64)
    low, high = values.min(), values.max()
    if not np.isfinite(values).all() or low == high:
        return array
    found = np.clip(generator.normal(values.mean(), values.std(), values.shape), low, high).reshape(-1)
    first, second = generator.choice(found.size, 2, replace=False)
    found[first], found[second] = low, high
    rounded = np.rint(found) if array.dtype.kind in "iu" else found
    made: Array = rounded.reshape(array.shape).astype(array.dtype)
    return made


def _roles(graph: onnx.GraphProto) -> tuple[set[str], set[str]]:
    """Return (constants that are no weights, integers that are codes of weights)."""
    kept, codes = set[str](), set[str]()
    for node in graph.node:
        kept |= {node.input[index] for index in KEPT_INPUTS.get(node.op_type, ()) if index < len(node.input)}
        if node.op_type == "DequantizeLinear":
            codes.add(node.input[0])
        elif node.op_type in ("QLinearConv", "QLinearMatMul"):
            codes.add(node.input[3])
    return kept, codes


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            inner = [attribute.g] if attribute.HasField("g") else list(attribute.graphs)
            for one in inner:
                yield from _graphs(one)
