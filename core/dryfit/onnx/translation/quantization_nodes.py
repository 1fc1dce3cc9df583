"""Quantize and dequantize nodes of a model, read as what implicit quantization can say: INT8, one scale, no zero point.

Everything else is refused by the names of node and tensor; all reasons are gathered before anything is raised.
"""

from __future__ import annotations

import re
from typing import Any

import attrs
import numpy as np
from onnx import NodeProto, TensorProto

from dryfit.errors import OnnxImportError
from dryfit.onnx.editing.model_graph import ModelGraph, attribute, node_name
from dryfit.short_text import grouped

Array = np.ndarray[Any, Any]

QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"
DOMAINS = ("", "ai.onnx", "com.microsoft")

_CODES = (TensorProto.INT8, TensorProto.INT32)
_OTHER_FORMS = ("DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger")
_WORDS: dict[int, str] = {
    TensorProto.UINT8: "UINT8: implicit INT8 is symmetric, from -128 to 127",
    TensorProto.INT4: "INT4: implicit quantization has INT8 only",
    TensorProto.FLOAT8E4M3FN: "FP8: implicit quantization has INT8 only",
    TensorProto.FLOAT4E2M1: "FP4: implicit quantization has INT8 only",
}


@attrs.frozen(eq=False)
class QuantizationNode:
    """A quantize or dequantize node.

    Attributes:
        name: of the node.
        node: the node.
        is_quantize: whether it quantizes.
        scale: float32, one number or one for each index of `axis`.
        axis: of the scale, where it has several numbers.
    """

    name: str
    node: NodeProto
    is_quantize: bool
    scale: Array
    axis: int

    @property
    def source(self) -> str:
        """The value that it reads."""
        return str(self.node.input[0])

    @property
    def result(self) -> str:
        """The value that it gives."""
        return str(self.node.output[0])

    @property
    def is_per_tensor(self) -> bool:
        """Whether it has one scale."""
        return self.scale.size == 1

    def spread(self, shape: tuple[int, ...]) -> Array:
        """The scale so that it broadcasts against a tensor of a shape."""
        if self.is_per_tensor:
            return self.scale.reshape(())
        along = [1] * len(shape)
        along[self.axis] = -1
        return self.scale.reshape(along)


class Refusals:
    """Reasons why a model cannot be translated, raised together."""

    def __init__(self) -> None:
        self._reasons: list[tuple[object, str, str]] = []

    def add(self, node: str, tensor: str, reason: str) -> None:
        """Refuse a node for one of its tensors."""
        kind = re.sub(r"-?\d+", "", reason)  # a zero point of 3 is refused as one of 4 is
        self._reasons.append((kind, node, f"node {node!r}, tensor {tensor!r}: {reason}"))

    def raise_any(self) -> None:
        """Raise what was gathered.

        Raises:
            OnnxImportError: there are reasons; of many that are alike the first nodes are named.
        """
        if self._reasons:
            raise OnnxImportError(
                "The model's quantization cannot be said by implicit scales",
                found="\n  " + "\n  ".join(grouped(self._reasons)) + "\n",
                allowed="INT8 with zero points of 0, one scale an activation, and one or one a channel for weights",
                source="TensorRT developer guide, Working with Quantized Types: Explicit vs Implicit Quantization",
                remedy="Quantize the model anew with symmetric INT8, or run it as it is on this machine's CPU with the "
                "arithmetic of a library: --quantize-method onnx (`dryfit quantize-methods` lists all)",
            )


def is_quantization(node: NodeProto) -> bool:
    """Whether a node quantizes or dequantizes."""
    return node.op_type in (QUANTIZE, DEQUANTIZE) and node.domain in DOMAINS


def quantization_node(graph: ModelGraph, node: NodeProto, refusals: Refusals) -> QuantizationNode | None:
    """A quantize or dequantize node as a record; None where it is refused."""
    name, tensor = node_name(node), str(node.input[0])
    scale = graph.constant(node.input[1])
    zero_point = graph.constant(node.input[2]) if len(node.input) > 2 and node.input[2] else None
    if scale is None or (zero_point is None and len(node.input) > 2 and node.input[2]):
        refusals.add(name, tensor, "scale and zero point have to be constants")
        return None
    if zero_point is not None and np.any(zero_point.astype(np.float32)):
        refusals.add(name, tensor, f"the zero point is {_numbers(zero_point)}, and has to be 0")
        return None
    reason = _flaw(graph, node, scale)
    if reason:
        refusals.add(name, tensor, reason)
        return None
    flat = scale.astype(np.float32).reshape(-1)
    axis = int(attribute(node, "axis", 1))
    return QuantizationNode(name, node, node.op_type == QUANTIZE, flat, axis)


def refuse_other_forms(graph: ModelGraph, refusals: Refusals) -> None:
    """Refuse quantization that is not in Q/DQ nodes of ONNX's own."""
    for node in graph.nodes:
        is_trt = node.domain == "trt" and "uantize" in node.op_type
        if is_trt or node.op_type in _OTHER_FORMS:
            operator = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
            refusals.add(node_name(node), str(node.input[0]), f"it is {operator}, not a Q/DQ pair of INT8")


def _flaw(graph: ModelGraph, node: NodeProto, scale: Array) -> str:
    if attribute(node, "block_size", 0):
        return f"it has one scale a block of {attribute(node, 'block_size')}"
    kind = _code_type(graph, node)
    if kind not in _CODES:
        return f"it is {_WORDS.get(kind, TensorProto.DataType.Name(kind) + ': implicit quantization has INT8 only')}"
    values = scale.astype(np.float32)
    if not (np.isfinite(values).all() and (values > 0).all()):
        return "a scale is not positive and finite"
    return "" if scale.ndim < 2 or scale.size == 1 else f"its scale has the shape {scale.shape}"


def _code_type(graph: ModelGraph, node: NodeProto) -> int:
    """ONNX's number of the quantized type."""
    if node.op_type == DEQUANTIZE:
        return graph.data_type(node.input[0])
    if len(node.input) > 2 and node.input[2]:
        return graph.data_type(node.input[2])
    return int(attribute(node, "output_dtype", 0)) or TensorProto.UINT8


def _numbers(values: Array) -> str:
    flat = values.reshape(-1)
    return str(flat[0]) if flat.size == 1 else f"{flat.min()} to {flat.max()}"
