"""Limits of the GPU: every layer that TensorRT has, in TensorRT's data types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryfit.network.data_types import DataType
from dryfit.target.checks import check
from dryfit.target.limits import Finding, LimitTable, Question, rule, rules

if TYPE_CHECKING:
    from dryfit.network.tensor import Tensor


@check("scales of activations")
def activations_have_one_scale(question: Question) -> Finding | None:
    """Activations must have one scale per tensor (FP4: also per block); scales may be computed at run time."""
    scale = question.layer.get_input(1)
    if scale is None or not question.is_constant(scale) or _is_of_weights(question):
        return None
    values, quantized = question.spec(scale).value, _quantized(question)
    if values is None or values.size == 1 or question.spec(quantized).dtype is DataType.FP4:
        return None
    return Finding(f"{values.size} for {question.inputs[0].name!r}", "1")


@check("type of quantized activations")
def activations_are_not_int4(question: Question) -> Finding | None:
    """Only weights may be INT4."""
    quantized = _quantized(question)
    if question.spec(quantized).dtype is not DataType.INT4 or _is_of_weights(question):
        return None
    return Finding(f"INT4 for {quantized.name!r}, which depends on the input", "INT8, FP8 or FP4 for activations")


@check("scales of activations")
def fp4_activations_are_quantized_dynamically(question: Question) -> Finding | None:
    """The scales of FP4 activations should be computed from the data."""
    scale, quantized = question.layer.get_input(1), _quantized(question)
    is_static = scale is not None and question.is_constant(scale)
    if not is_static or question.spec(quantized).dtype is not DataType.FP4 or _is_of_weights(question):
        return None
    return Finding(f"constants for {question.inputs[0].name!r}", "scales of a dynamic quantize layer")


def _quantized(question: Question) -> Tensor:
    """The quantized side of a layer."""
    return question.outputs[0] if question.layer.kind == "quantize" else question.inputs[0]


def _is_of_weights(question: Question) -> bool:
    """Whether what is quantized follows from constants."""
    tensor: Tensor | None = question.inputs[0]
    while tensor is not None and not question.is_constant(tensor):
        producer = tensor.producer
        # Between weights and what quantizes them may be conversions and layers that only move values.
        if producer is None or not (producer.is_conversion or producer.only_moves_values):
            return False
        tensor = producer.get_input(0)
    return True


_CHAPTER = 'TensorRT "Working with Quantized Types"'

QUANTIZATION = rules(
    ("quantize", "dequantize"),
    rule(
        "quantization.activation_scales",
        activations_have_one_scale,
        source=f"{_CHAPTER}, quantization modes: activations can only be quantized using per-tensor quantization",
        remedy="Use one per-tensor scale; only weights may have per-channel or per-block scales",
    ),
    rule(
        "quantization.int4_activation",
        activations_are_not_int4,
        source=f"{_CHAPTER}, quantization schemes: INT4 is supported for weight quantization only",
        remedy="Quantize activations to INT8, FP8 or FP4, or leave them in floating point",
    ),
    rule(
        "quantization.fp4_activation",
        fp4_activations_are_quantized_dynamically,
        source=f"{_CHAPTER}, quantization schemes: dynamic quantization is recommended for FP4 activations",
        remedy="Use a dynamic quantize layer, whose scales follow the data",
        severity="warning",
    ),
)


@check("data type")
def device_types_only(question: Question) -> Finding | None:
    """Tensors must have one of TensorRT's data types."""
    foreign = [
        f"{tensor.name!r}: {question.spec(tensor).dtype.text}"
        for tensor in (*question.inputs, *question.outputs)
        if not question.spec(tensor).dtype.is_device_type
    ]
    return Finding(", ".join(foreign), "a TensorRT data type") if foreign else None


@check("parameters")
def nothing_host_only(question: Question) -> Finding | None:
    """The layer must not use options that exist only in ONNX and on the host."""
    layer: Any = question.layer
    operation: Any = getattr(layer, "op", None)
    if getattr(operation, "is_host_only", False):
        return Finding(operation.name, "TensorRT's operations", parameter="op")
    if getattr(layer, "is_host_only", False):
        if layer.kind in ("quantize", "dequantize"):
            return Finding(f"a {layer.kind} with {layer.host_only_reason}", _SYMMETRIC, remedy=_QUANTIZE_AGAIN)
        if layer.kind == "quantized_operator":
            return Finding(f"{layer.computes} by {layer.host_only_reason}", "TensorRT's own arithmetic", remedy=_METHOD)
        if layer.bodies:
            return Finding(f"a {layer.kind} with {layer.host_only_reason}", "layers and types of TensorRT")
        return Finding(f"a {layer.kind} with options that TensorRT does not have", "TensorRT's own")
    return None


_ON_THE_HOST = 'Run this layer on the CPU: allow it with --fallback CPU, or config.allow_fallback("CPU")'
_SYMMETRIC = "symmetric INT8, FP8, INT4 or FP4 with per-tensor, per-channel or one-dimensional block scales"
_METHOD = f"Quantize methods run on the host. {_ON_THE_HOST}; or remove the method"
_QUANTIZE_AGAIN = f"Quantize the model symmetrically, with zero points of 0. {_ON_THE_HOST}"

_EVERY_LAYER = rules(
    (),
    rule(
        "types",
        device_types_only,
        source="TensorRT DataType",
        remedy=f"{_ON_THE_HOST}; or cast to FP32, FP16, INT32 or INT64 to run it on the GPU",
    ),
    rule(
        "parameters",
        nothing_host_only,
        source="TensorRT INetworkDefinition: the layer's own parameters",
        remedy=_ON_THE_HOST,
    ),
)

LIMITS = LimitTable("GPU", [*_EVERY_LAYER, *QUANTIZATION], source="TensorRT INetworkDefinition")
