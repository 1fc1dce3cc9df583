"""Writes small TFLite models by the schema's published bindings, for the harness."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import pytest

MISSING = "is not installed: pip install './examples/dryfit-ethos-u[testing]' 'dryfit[tflite]'"


def bindings() -> Any:
    """Return the schema's bindings; skip the test where they, or the importer's, are not installed."""
    for name in ("flatbuffers", "tflite", "ai_edge_litert"):
        pytest.importorskip(name, reason=f"{name} {MISSING}")
    from ai_edge_litert import schema_py_generated

    return schema_py_generated


TYPES = {"int8": 9, "uint8": 3, "int16": 7, "int32": 2, "int64": 4, "float32": 0, "bool": 6}
NUMPY = {name: np.dtype(name) for name in TYPES}


@attrs.frozen
class Tensor:
    """A tensor of a model under construction.

    Attributes:
        shape: extents.
        type: TFLite's type, by its name in numpy.
        scale: scale, or scales per channel; None for a tensor without quantization.
        zero_point: zero point of each scale.
        axis: axis of the scales.
        values: contents of a constant.
    """

    shape: tuple[int, ...]
    type: str = "int8"
    scale: float | Sequence[float] | None = 0.05
    zero_point: int = 0
    axis: int = 0
    values: np.ndarray | None = None


@attrs.frozen
class Operator:
    """An operator: its TFLite name, inputs and outputs (None for an omitted one), and fields of its options."""

    name: str
    inputs: Sequence[Tensor | None]
    outputs: Sequence[Tensor]
    options: Mapping[str, Any] = attrs.field(factory=dict)
    options_type: str | None = None


def _options_name(operator: Operator, schema: Any) -> str | None:
    if operator.options_type is not None:
        return operator.options_type or None
    words = operator.name.replace("_2D", "2D").split("_")
    made = "".join(word if word[0].isdigit() else word.capitalize() for word in words)
    special = {
        "Conv2d": "Conv2DOptions",
        "DepthwiseConv2d": "DepthwiseConv2DOptions",
        "MaxPool2d": "Pool2DOptions",
        "AveragePool2d": "Pool2DOptions",
        "Minimum": "MaximumMinimumOptions",
        "Maximum": "MaximumMinimumOptions",
        "Mean": "ReducerOptions",
        "Sum": "ReducerOptions",
        "ReduceMax": "ReducerOptions",
        "ReduceMin": "ReducerOptions",
        "BatchMatmul": "BatchMatMulOptions",
    }
    name = special.get(made, f"{made}Options")
    return name if hasattr(schema, f"{name}T") else None


def write(operators: Iterable[Operator], inputs: Sequence[Tensor] = (), outputs: Sequence[Tensor] = ()) -> bytes:
    """Return a model of these operators.

    Args:
        operators: in execution order.
        inputs, outputs: those of the model. Default: each tensor that no operator writes, and that none reads.
    """
    schema = bindings()
    import flatbuffers

    model, graph = schema.ModelT(), schema.SubGraphT()
    model.version, model.buffers, model.operatorCodes, model.subgraphs = 3, [schema.BufferT()], [], [graph]
    model.description = b"dryfit"
    graph.name, graph.tensors, graph.operators = b"main", [], []
    places: dict[int, int] = {}
    codes: dict[str, int] = {}
    kept: list[Tensor] = []
    read, written = dict[int, None](), dict[int, None]()

    def place(tensor: Tensor | None) -> int:
        if tensor is None:
            return -1
        if id(tensor) not in places:
            places[id(tensor)] = len(graph.tensors)
            kept.append(tensor)
            graph.tensors.append(_tensor(schema, model, tensor, len(graph.tensors)))
        return places[id(tensor)]

    for operator in operators:
        if operator.name not in codes:
            code = schema.OperatorCodeT()
            code.builtinCode = getattr(schema.BuiltinOperator, operator.name)
            code.deprecatedBuiltinCode, code.version = min(code.builtinCode, 127), 1
            codes[operator.name] = len(model.operatorCodes)
            model.operatorCodes.append(code)
        made = schema.OperatorT()
        made.opcodeIndex = codes[operator.name]
        made.inputs = [place(one) for one in operator.inputs]
        made.outputs = [place(one) for one in operator.outputs]
        read.update(dict.fromkeys(made.inputs))
        written.update(dict.fromkeys(made.outputs))
        name = _options_name(operator, schema)
        if name is not None:
            made.builtinOptionsType = getattr(schema.BuiltinOptions, name)
            made.builtinOptions = getattr(schema, f"{name}T")()
            for field, value in operator.options.items():
                if not hasattr(made.builtinOptions, field):
                    raise AttributeError(f"{name} has no {field}")
                setattr(made.builtinOptions, field, value)
        graph.operators.append(made)
    constant = {index for index, tensor in enumerate(kept) if tensor.values is not None}
    graph.inputs = [place(one) for one in inputs] or [
        i for i in read if i >= 0 and i not in written | dict.fromkeys(constant)
    ]
    graph.outputs = [place(one) for one in outputs] or [i for i in written if i not in read]
    builder = flatbuffers.Builder(1 << 16)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _tensor(schema: Any, model: Any, tensor: Tensor, index: int) -> Any:
    made = schema.TensorT()
    made.shape, made.type = list(tensor.shape), TYPES[tensor.type]
    made.name = f"t{index}".encode()
    made.buffer = 0
    if tensor.values is not None:
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(np.ascontiguousarray(tensor.values, NUMPY[tensor.type]).tobytes(), np.uint8)
        made.buffer = len(model.buffers)
        model.buffers.append(buffer)
    if tensor.scale is not None:
        scales = np.atleast_1d(np.asarray(tensor.scale, np.float32))
        made.quantization = schema.QuantizationParametersT()
        made.quantization.scale = scales
        made.quantization.zeroPoint = np.full(scales.shape, tensor.zero_point, np.int64)
        made.quantization.quantizedDimension = tensor.axis if scales.size > 1 else 0
    return made
