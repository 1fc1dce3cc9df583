"""TensorFlow Lite models of one operator, written with the schema's objects: no converter, no TensorFlow.

Source: the schema in the `ai-edge-litert` wheel; operator versions as LiteRT registers them for quantized tensors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

Array = np.ndarray[Any, Any]
_TYPES = {"float32": "FLOAT32", "int32": "INT32", "uint8": "UINT8", "int8": "INT8"}
_LARGEST_OLD_CODE = 127


@attrs.frozen(eq=False)
class LiteTensor:
    """A tensor of a model.

    Attributes:
        shape: in the library's layout.
        dtype: numpy's name.
        scale, zero_point: of a quantized tensor; arrays where there is one a channel.
        axis: the channels, where there is one scale per channel.
        constant: the values of a constant.
    """

    shape: Sequence[int]
    dtype: str
    scale: Any = None
    zero_point: Any = None
    axis: int = 0
    constant: Array | None = None


def tflite_model(
    operator: str, version: int, options: Mapping[str, Any], inputs: Sequence[LiteTensor], output: LiteTensor
) -> Array:
    """The bytes of a model with one operator, as uint8.

    Args:
        operator: name in the schema, such as `CONV_2D`.
        version: the operator's.
        options: `kind`, the name of the options' table, and its fields; empty where it has none.
        inputs: the operator's; those without a constant are the model's inputs too.
        output: of both.
    """
    import flatbuffers  # type: ignore[import-untyped, import-not-found]
    from ai_edge_litert import schema_py_generated as schema  # type: ignore[import-untyped, import-not-found]

    model = schema.ModelT()
    model.version = 3
    code = schema.OperatorCodeT()
    code.builtinCode = getattr(schema.BuiltinOperator, operator)
    code.deprecatedBuiltinCode = min(code.builtinCode, _LARGEST_OLD_CODE)
    code.version = version
    model.operatorCodes = [code]
    model.buffers = [schema.BufferT()]
    graph = schema.SubGraphT()
    tensors = [*inputs, output]
    graph.tensors = [_tensor(schema, model, f"t{index}", tensor) for index, tensor in enumerate(tensors)]
    graph.inputs = [index for index, tensor in enumerate(inputs) if tensor.constant is None]
    graph.outputs = [len(inputs)]
    node = schema.OperatorT()
    node.opcodeIndex = 0
    node.inputs = list(range(len(inputs)))
    node.outputs = [len(inputs)]
    if options:
        node.builtinOptionsType = getattr(schema.BuiltinOptions, options["kind"])
        node.builtinOptions = getattr(schema, options["kind"] + "T")()
        for name, value in options.items():
            if name != "kind":
                setattr(node.builtinOptions, name, value)
    graph.operators = [node]
    model.subgraphs = [graph]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return np.frombuffer(bytes(builder.Output()), np.uint8)


def _tensor(schema: Any, model: Any, name: str, tensor: LiteTensor) -> Any:
    """A tensor of the schema; a constant adds a buffer to the model."""
    made = schema.TensorT()
    made.name = name.encode()
    made.shape = [int(extent) for extent in tensor.shape]
    made.type = getattr(schema.TensorType, _TYPES[tensor.dtype])
    made.buffer = 0
    if tensor.constant is not None:
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(np.ascontiguousarray(tensor.constant).tobytes(), np.uint8)
        made.buffer = len(model.buffers)
        model.buffers.append(buffer)
    if tensor.scale is not None:
        grid = schema.QuantizationParametersT()
        grid.scale = np.atleast_1d(np.asarray(tensor.scale, np.float32)).tolist()
        grid.zeroPoint = np.atleast_1d(np.asarray(tensor.zero_point, np.int64)).tolist()
        grid.quantizedDimension = tensor.axis
        made.quantization = grid
    return made
