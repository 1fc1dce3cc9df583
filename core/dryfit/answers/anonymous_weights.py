"""Random weights of the same ranges in the place of a model's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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


_FLOATS = {"FLOAT", "FLOAT16", "BFLOAT16", "DOUBLE"}
_CODES = {"INT16", "UINT16", "INT8", "UINT8", "INT4", "UINT4", "INT2", "UINT2"}
"""Integers that hold weights. Those of 32 and 64 bits are shapes, axes and indices, unless they are dequantized."""


def without_weights(model: onnx.ModelProto, seed: int = 0) -> onnx.ModelProto:
    """Return a copy of a model whose weights are random.

    Each tensor of constants with more than one value gets normally distributed values of the same mean and deviation,
    clipped to the same range, whose ends occur: ranges, scales and the size of activations stay as they were, and no
    value but the two ends remains. Shapes, axes, indices, scales, limits and scalars stay, since they decide what
    layers are; so do infinities and NaN in their places.

    Args:
        model: an ONNX model without functions, with its weights loaded.
        seed: seed of the values; the same model and seed give the same copy.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    generator = np.random.default_rng(seed)
    graphs = list(_graphs(copy.graph))
    # Names are those of the whole model: a graph inside of a node reads the constants around it.
    nodes = [node for graph in graphs for node in graph.node]
    kept, codes = _roles(nodes)
    constants = [(one.name, one) for graph in graphs for one in graph.initializer]
    constants += [(one.values.name, one.values) for graph in graphs for one in graph.sparse_initializer]
    for node in nodes:
        for one in node.attribute if node.op_type == "Constant" else ():
            if one.name == "value":
                constants.append((node.output[0], one.t))
            elif one.name == "sparse_value":
                constants.append((node.output[0], one.sparse_tensor.values))
            elif one.name == "value_floats" and node.output[0] not in kept and len(one.floats) > 1:
                one.floats[:] = _random(np.array(one.floats, np.float32), generator).tolist()
    for name, tensor in constants:
        if name not in kept and _holds_weights(tensor, is_code=name in codes):
            values = _random(numpy_helper.to_array(tensor), generator)
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    return copy


def _holds_weights(tensor: onnx.TensorProto, *, is_code: bool) -> bool:
    kind = onnx.TensorProto.DataType.Name(tensor.data_type)
    is_float = kind in _FLOATS or kind.startswith(("FLOAT8E4M3", "FLOAT8E5M2")) or kind == "FLOAT4E2M1"
    return int(np.prod(tensor.dims)) > 1 and (is_float or kind in _CODES or (is_code and kind == "INT32"))


def _random(array: Array, generator: np.random.Generator) -> Array:
    values = array.astype(np.float64).reshape(-1)
    places = np.flatnonzero(np.isfinite(values))
    if places.size < 2 or values[places].min() == values[places].max():
        return array
    known = values[places]
    low, high = known.min(), known.max()
    found = np.clip(generator.normal(known.mean(), known.std(), known.shape), low, high)
    first, second = generator.choice(found.size, 2, replace=False)
    found[first], found[second] = low, high
    # Codes are whole numbers; the types of ml_dtypes that are not have no kind of their own.
    values[places] = np.rint(found) if array.dtype.kind in "iu" or "int" in array.dtype.name else found
    made: Array = values.reshape(array.shape).astype(array.dtype)
    return made


def _roles(nodes: Sequence[onnx.NodeProto]) -> tuple[set[str], set[str]]:
    """Return (constants that are no weights, integers that are codes of weights)."""
    kept, codes = set[str](), set[str]()
    for node in nodes:
        kept |= {node.input[index] for index in KEPT_INPUTS.get(node.op_type, ()) if index < len(node.input)}
        if node.op_type == "DequantizeLinear":
            codes.add(node.input[0])
        elif node.op_type == "QLinearConv" and len(node.input) > 8:
            codes.add(node.input[8])
    return kept, codes


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            inner = [attribute.g] if attribute.HasField("g") else list(attribute.graphs)
            for one in inner:
                yield from _graphs(one)
