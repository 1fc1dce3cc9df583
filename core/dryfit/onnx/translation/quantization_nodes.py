"""Q/DQ nodes and weights of a model, read as what implicit quantization can say: INT8, one scale, no zero point.

Everything else is refused by the names of node and tensor; all reasons are gathered before anything is raised.

An implicit build quantizes weights itself: for each output channel by the largest magnitude over 127. Where a channel
of codes reaches 127, its scale is found again and every code with it. Where it does not, as after training that moved
scales, the finer scale gives other codes, and no real weights could prevent it: the difference is reported. A code of
-128, which implicit INT8 does not have, coarsens the scale of its channel, unless it is clipped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
from onnx import NodeProto, TensorProto, helper
from onnx.reference import ReferenceEvaluator

from dryfit.attrs_classes import frozen
from dryfit.errors import OnnxImportError
from dryfit.network.tensor import Array
from dryfit.onnx.editing.model_graph import ModelGraph, attribute, node_name
from dryfit.quantization.int8_weights import LARGEST, int8_scales
from dryfit.short_text import grouped

MOVING_OPERATORS = frozenset({"Identity", "Flatten", "Reshape", "Squeeze", "Transpose", "Unsqueeze", "Dropout"})
"""Their data is input 0. Dropout moves everything when it is not training, which devices do not."""


def carried_value(graph: ModelGraph, node: NodeProto, origin: str) -> str | None:
    """The input by which a node reads a value, or what was only moved of it; None where it reads neither."""
    for value in node.input:
        current = value
        while current:
            if current == origin:
                return str(value)
            producer = graph.producer(current)
            if producer is None or producer.op_type not in MOVING_OPERATORS:
                break
            current = producer.input[0]
    return None


QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"
DOMAINS = ("", "ai.onnx", "com.microsoft")

_CODES = (TensorProto.INT8, TensorProto.INT32)
_OTHER_FORMS = ("DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger")
_WORDS: dict[int, str] = {
    TensorProto.UINT8: "UINT8: implicit INT8 is symmetric, from -128 to 127",
    TensorProto.INT4: "INT4: implicit quantization supports only INT8",
    TensorProto.FLOAT8E4M3FN: "FP8: implicit quantization supports only INT8",
    TensorProto.FLOAT4E2M1: "FP4: implicit quantization supports only INT8",
}


@frozen(eq=False)
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


class TranslationRefusals:
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
                "The model's quantization cannot be expressed with implicit scales",
                found="\n  " + "\n  ".join(grouped(self._reasons)) + "\n",
                allowed="INT8 with zero points of 0, per-tensor scales for activations, and per-tensor or "
                "per-channel scales for weights",
                source="TensorRT developer guide, Working with Quantized Types: Explicit vs Implicit Quantization",
                remedy="Quantize the model again with symmetric INT8, or run it unchanged on this machine's CPU with "
                "the arithmetic of a library: --quantize-method onnx (`dryfit quantize-methods` lists all)",
            )


def is_quantization(node: NodeProto) -> bool:
    """Whether a node quantizes or dequantizes."""
    return node.op_type in (QUANTIZE, DEQUANTIZE) and node.domain in DOMAINS


def quantization_node(graph: ModelGraph, node: NodeProto, refusals: TranslationRefusals) -> QuantizationNode | None:
    """A quantize or dequantize node as a record; None where it is refused."""
    name, tensor = node_name(node), str(node.input[0])
    scale = graph.constant(node.input[1])
    zero_point = graph.constant(node.input[2]) if len(node.input) > 2 and node.input[2] else None
    if scale is None or (zero_point is None and len(node.input) > 2 and node.input[2]):
        refusals.add(name, tensor, "scale and zero point must be constants")
        return None
    if zero_point is not None and np.any(zero_point.astype(np.float32)):
        refusals.add(name, tensor, f"the zero point is {_numbers(zero_point)}, and must be 0")
        return None
    reason = _flaw(graph, node, scale)
    if reason:
        refusals.add(name, tensor, reason)
        return None
    flat = scale.astype(np.float32).reshape(-1)
    axis = int(attribute(node, "axis", 1))
    return QuantizationNode(name, node, node.op_type == QUANTIZE, flat, axis)


def refuse_other_forms(graph: ModelGraph, refusals: TranslationRefusals) -> None:
    """Refuse quantization that is not in Q/DQ nodes of ONNX's own."""
    for node in graph.nodes:
        is_trt = node.domain == "trt" and "uantize" in node.op_type
        if is_trt or node.op_type in _OTHER_FORMS:
            operator = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
            refusals.add(node_name(node), str(node.input[0]), f"it is {operator}, not an INT8 Q/DQ pair")


def _flaw(graph: ModelGraph, node: NodeProto, scale: Array) -> str:
    if attribute(node, "block_size", 0):
        return f"it has one scale per block of {attribute(node, 'block_size')}"
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


@frozen(eq=False)
class PlainWeights:
    """Dequantized weights.

    Attributes:
        name: of the value that held them, dequantized.
        codes: int8.
        scale: float32, broadcasts against the codes.
    """

    name: str
    codes: Array
    scale: Array

    @property
    def values(self) -> Array:
        """float32: code times scale, rounded once."""
        return (self.codes.astype(np.float32) * self.scale).astype(np.float32)

    def clipped(self) -> PlainWeights:
        """The same with -127 in the place of -128."""
        return attrs.evolve(self, codes=np.maximum(self.codes, -LARGEST).astype(self.codes.dtype))

    def moved(self, node: NodeProto, others: Sequence[Array]) -> PlainWeights:
        """What a node that only moves values makes of them."""
        names = [f"x{index}" for index in range(1 + len(others))]
        copy = NodeProto()
        copy.CopyFrom(node)
        del copy.input[:], copy.output[:]
        copy.input.extend(names)
        copy.output.append("y")
        evaluator = ReferenceEvaluator(helper.make_graph([copy], "moved", [], []), opsets={"": 21})
        spread = np.broadcast_to(self.scale, self.codes.shape)

        def move(values: Array) -> Array:
            results: Any = evaluator.run(["y"], dict(zip(names, [values, *others], strict=True)))
            return np.asarray(results[0])

        return PlainWeights(node.output[0], move(self.codes), move(spread))


@frozen
class RequantizedWeights:
    """What becomes of weights when an implicit build quantizes them.

    Attributes:
        node: name of the node that multiplies by them.
        tensor: name of the value that held them, dequantized.
        channels: how many output channels they have.
        same_channels: how many keep every code.
        changed_codes: how many codes change.
        codes: how many there are.
        largest_difference: of a weight's value, as a share of its channel's scale in the Q/DQ model.
    """

    node: str
    tensor: str
    channels: int
    same_channels: int
    changed_codes: int
    codes: int
    largest_difference: float


def requantized(node: NodeProto, weights: PlainWeights) -> RequantizedWeights:
    """Quantize weights as an implicit build does, and compare."""
    weights, channel_axes = by_channels(node, weights)
    real = weights.values
    others = tuple(axis for axis in range(real.ndim) if axis not in channel_axes)
    scales = int8_scales(np.abs(real).max(axis=others, keepdims=True, initial=0.0))
    codes = np.clip(np.rint(real / scales), -LARGEST, LARGEST)
    changed = codes != weights.codes
    difference = np.abs(codes * scales.astype(np.float64) - real) / weights.scale
    per_channel = changed.any(axis=others)
    return RequantizedWeights(
        node_name(node),
        weights.name,
        int(per_channel.size),
        int(np.count_nonzero(~per_channel)),
        int(np.count_nonzero(changed)),
        int(changed.size),
        float(difference.max(initial=0.0)),
    )


def by_channels(node: NodeProto, weights: PlainWeights) -> tuple[PlainWeights, tuple[int, ...]]:
    """Weights in a shape that has axes whose indices are the output channels of the node that reads them; the axes."""
    rank = weights.codes.ndim
    groups = attribute(node, "group", 1)
    if node.op_type == "Conv":
        return weights, (0,)
    if node.op_type == "ConvTranspose" and groups > 1:
        inputs, *rest = weights.codes.shape
        scale = np.broadcast_to(weights.scale, weights.codes.shape)
        shape = (groups, inputs // groups, *rest)
        return PlainWeights(weights.name, weights.codes.reshape(shape), scale.reshape(shape)), (0, 2)
    if node.op_type == "ConvTranspose":
        return weights, (1,)
    return weights, (0,) if attribute(node, "transB", 0) else (rank - 1,)
