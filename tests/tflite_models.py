"""Writes TFLite models for tests: tensors, operators, quantization, bytes. No converter, no TensorFlow.

Example:
    >>> model = TfliteModel()
    >>> x = model.input("x", (1, 8, 8, 3), "int8", scale=0.5, zero_point=-3)
    >>> w = model.constant("w", weights, scale=scales, axis=0)
    >>> y = model.tensor("y", (1, 8, 8, 4), "int8", scale=0.25, zero_point=1)
    >>> model.operator("CONV_2D", [x, w, None], [y], "Conv2DOptions", strideH=1, strideW=1)
    >>> data = model.to_bytes(outputs=[y])

Source: the schema in the `ai-edge-litert` wheel; operator versions as LiteRT registers them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_TYPES = {
    "float32": "FLOAT32",
    "float16": "FLOAT16",
    "int32": "INT32",
    "int64": "INT64",
    "uint8": "UINT8",
    "int8": "INT8",
    "int16": "INT16",
    "bool": "BOOL",
}
_LARGEST_OLD_CODE = 127
_VERSIONS = {
    "NEG": 1,
    "RELU_N1_TO_1": 1,
    "CONV_2D": 3,
    "DEPTHWISE_CONV_2D": 3,
    "FULLY_CONNECTED": 4,
    "TRANSPOSE_CONV": 3,
    "RESIZE_BILINEAR": 3,
    "RESIZE_NEAREST_NEIGHBOR": 3,
    "BROADCAST_TO": 2,
    "DEPTH_TO_SPACE": 1,
    "RESHAPE": 1,
    "SQUEEZE": 1,
    "EXPAND_DIMS": 1,
}
_OF_ALL_TYPES = frozenset({"BROADCAST_TO"})
"""Operators that LiteRT registers with one version only."""
_OF_INT16 = {"CONV_2D": 4, "DEPTHWISE_CONV_2D": 5, "FULLY_CONNECTED": 7}
_OF_INT16 |= dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D", "MEAN", "REDUCE_MAX", "REDUCE_MIN"), 3)
_OF_INT16 |= dict.fromkeys(("RELU", "LOGISTIC", "TANH", "SOFTMAX", "RSQRT", "ABS", "TRANSPOSE_CONV", "BATCH_MATMUL"), 3)
_OF_INT16["NEG"] = 1
_OF_INT16 |= dict.fromkeys(("LEAKY_RELU", "GELU", "EXP", "LOG", "SQRT", "DIV", "RELU6"), 2) | {"RESHAPE": 1}
"""Versions of operators for INT8, and for INT16; the others have version 2, and of INT16 version 4."""


class TfliteModel:
    """A model of one subgraph. Tensors are numbers, in the order in which they were added."""

    def __init__(self, description: str = "dryfit's tests") -> None:
        import flatbuffers
        from ai_edge_litert import schema_py_generated as schema

        self._flatbuffers, self.schema = flatbuffers, schema
        self.model = schema.ModelT()
        self.model.version = 3
        self.model.description = description
        self.model.buffers = [schema.BufferT()]
        self.model.operatorCodes = []
        self.graph = schema.SubGraphT()
        self.graph.tensors, self.graph.operators = [], []
        self.graph.inputs, self.graph.outputs = [], []
        self.model.subgraphs = [self.graph]
        self.types: list[str] = []

    def tensor(
        self,
        name: str,
        shape: Sequence[int],
        dtype: str = "float32",
        scale: Any = None,
        zero_point: Any = 0,
        axis: int = 0,
        signature: Sequence[int] | None = None,
    ) -> int:
        """Add a tensor; returns its number.

        Args:
            name: as TFLite has it.
            shape: in TFLite's layout.
            dtype: numpy's name of the type.
            scale, zero_point: of a quantized tensor; arrays where there is one for each index of `axis`.
            axis: the channels, where there is one scale per channel.
            signature: the shape with -1 for dynamic dimensions.
        """
        made = self.schema.TensorT()
        made.name = name.encode()
        made.shape = [int(extent) for extent in shape]
        made.shapeSignature = None if signature is None else [int(extent) for extent in signature]
        made.type = getattr(self.schema.TensorType, _TYPES[dtype])
        made.buffer = 0
        made.hasRank = True
        if scale is not None:
            grid = self.schema.QuantizationParametersT()
            scales = np.atleast_1d(np.asarray(scale, np.float32))
            grid.scale = scales.tolist()
            grid.zeroPoint = np.broadcast_to(np.asarray(zero_point, np.int64), scales.shape).tolist()
            grid.quantizedDimension = axis
            made.quantization = grid
        self.graph.tensors.append(made)
        self.types.append(dtype)
        return len(self.graph.tensors) - 1

    def input(self, name: str, shape: Sequence[int], dtype: str = "float32", **grid: Any) -> int:
        """Add an input of the model; see `tensor`."""
        number = self.tensor(name, shape, dtype, **grid)
        self.graph.inputs.append(number)
        return number

    def constant(self, name: str, values: Any, **grid: Any) -> int:
        """Add a constant; see `tensor`."""
        array = np.ascontiguousarray(values)
        shape = np.shape(values)
        number = self.tensor(name, shape, array.dtype.name, **grid)
        buffer = self.schema.BufferT()
        buffer.data = np.frombuffer(array.tobytes(), np.uint8)
        self.graph.tensors[number].buffer = len(self.model.buffers)
        self.model.buffers.append(buffer)
        return number

    def operator(
        self,
        name: str,
        inputs: Sequence[int | None],
        outputs: Sequence[int],
        options: str = "",
        /,
        *,
        version: int | None = None,
        custom: str = "",
        **fields: Any,
    ) -> None:
        """Add an operator.

        Args:
            name: in the schema, such as `CONV_2D`.
            inputs: tensors; None where an optional one is absent.
            outputs: tensors.
            options: name of the options' table, such as `Conv2DOptions`.
            version: the operator's; None for the one that LiteRT registers for these types.
            custom: name of the operator, if it is `CUSTOM`.
            fields: of the options.
        """
        made = self.schema.OperatorT()
        made.opcodeIndex = self._code(name, version or self._version(name, inputs), custom)
        made.inputs = [-1 if one is None else one for one in inputs]
        made.outputs = list(outputs)
        if options:
            made.builtinOptionsType = getattr(self.schema.BuiltinOptions, options)
            made.builtinOptions = getattr(self.schema, f"{options}T")()
            for field, value in fields.items():
                setattr(made.builtinOptions, field, value)
        self.graph.operators.append(made)

    def _version(self, name: str, inputs: Sequence[int | None]) -> int:
        first = self.types[next((one for one in inputs if one is not None), 0)]
        if first == "int16" or any(one is not None and self.types[one] == "int16" for one in inputs):
            return _OF_INT16.get(name, 4)
        if first == "float32":
            return _VERSIONS[name] if name in _OF_ALL_TYPES else 1
        return _VERSIONS.get(name, 2)

    def _code(self, name: str, version: int, custom: str) -> int:
        code = self.schema.OperatorCodeT()
        code.builtinCode = getattr(self.schema.BuiltinOperator, name)
        code.deprecatedBuiltinCode = min(code.builtinCode, _LARGEST_OLD_CODE)
        code.version = version
        code.customCode = custom.encode() or None
        for index, known in enumerate(self.model.operatorCodes):
            if (known.builtinCode, known.version, known.customCode) == (code.builtinCode, version, code.customCode):
                return index
        self.model.operatorCodes.append(code)
        return len(self.model.operatorCodes) - 1

    def to_bytes(self, outputs: Sequence[int]) -> bytes:
        """Return the bytes of a file whose model has these outputs."""
        self.graph.outputs = list(outputs)
        builder = self._flatbuffers.Builder(1024)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


def litert_outputs(model: bytes, inputs: Sequence[Array], *, is_reference: bool = True) -> list[Array]:
    """Return what LiteRT computes: with its reference kernels, or else with its default delegate XNNPACK.

    Args:
        model: the bytes of a file.
        inputs: values, in the order of the model's inputs.
        is_reference: whether the reference kernels run (BUILTIN_REF).
    """
    from ai_edge_litert import interpreter as litert

    resolver = litert.OpResolverType.BUILTIN_REF if is_reference else litert.OpResolverType.AUTO
    interpreter = litert.Interpreter(model_content=model, experimental_op_resolver_type=resolver, num_threads=1)
    interpreter.allocate_tensors()
    for detail, values in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], np.ascontiguousarray(values))
    interpreter.invoke()
    return [np.array(interpreter.get_tensor(detail["index"])) for detail in interpreter.get_output_details()]
