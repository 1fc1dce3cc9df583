"""Limits of quantize and dequantize layers on the GPU: what activations may be quantized to, and by how many scales."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryfit.network.data_types import DataType
from dryfit.target.checks import check
from dryfit.target.limits import Finding, Question, rule, rules

if TYPE_CHECKING:
    from dryfit.network.tensor import Tensor


@check("scales of activations")
def activations_have_one_scale(question: Question) -> Finding | None:
    """Activations have one scale a tensor; those of FP4 may have one a block, and any may be computed at run time."""
    scale = question.layer.get_input(1)
    if scale is None or not question.is_constant(scale) or _is_of_weights(question):
        return None
    values, quantized = question.spec(scale).value, _quantized(question)
    if values is None or values.size == 1 or question.spec(quantized).dtype is DataType.FP4:
        return None
    return Finding(f"{values.size} for {question.inputs[0].name!r}", "1")


@check("type of quantized activations")
def activations_are_not_int4(question: Question) -> Finding | None:
    """INT4 is a type of weights."""
    quantized = _quantized(question)
    if question.spec(quantized).dtype is not DataType.INT4 or _is_of_weights(question):
        return None
    return Finding(f"INT4 for {quantized.name!r}, which depends on the input", "INT8, FP8 or FP4 for activations")


@check("scales of activations")
def fp4_activations_are_quantized_dynamically(question: Question) -> Finding | None:
    """The scales of FP4 activations are computed from the data."""
    scale, quantized = question.layer.get_input(1), _quantized(question)
    is_static = scale is not None and question.is_constant(scale)
    if not is_static or question.spec(quantized).dtype is not DataType.FP4 or _is_of_weights(question):
        return None
    return Finding(f"constants for {question.inputs[0].name!r}", "those of a dynamic quantize layer")


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
        remedy="Give one scale for the whole tensor; weights may have one a channel or a block",
    ),
    rule(
        "quantization.int4_activation",
        activations_are_not_int4,
        source=f"{_CHAPTER}, quantization schemes: INT4 is supported for weight quantization only",
        remedy="Quantize activations to INT8, FP8 or FP4, or leave them in real numbers",
    ),
    rule(
        "quantization.fp4_activation",
        fp4_activations_are_quantized_dynamically,
        source=f"{_CHAPTER}, quantization schemes: dynamic quantization is recommended for FP4 activations",
        remedy="Use a dynamic quantize layer, whose scales follow the data",
        severity="warning",
    ),
)
