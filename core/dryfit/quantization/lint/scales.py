"""Rules on scales, zero points and types of quantized tensors."""

from __future__ import annotations

from collections.abc import Iterator

from dryfit.network.data_types import DataType
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.quantization.lint.network_view import (
    CHAPTER,
    Hit,
    NetworkView,
    have_equal_scales,
    is_of_weights,
    lint_rule,
    moved_inputs,
    scale_of,
    scale_text,
)


@lint_rule(
    "qdq.activation.granularity",
    text="Activations must have per-tensor scales",
    remedy="Use a per-tensor scale; per-channel scales are for weights, and per-block scales for dynamic quantization",
    source=f"{CHAPTER}, Quantization Modes",
    severity="error",
)
def activation_granularity(view: NetworkView) -> Iterator[Hit]:
    """A tensor that is no constant, quantized by several scales that are."""
    for layer in view.conversions:
        scale, source = scale_of(layer), layer.inputs[0]
        is_told_before = isinstance(layer, Dequantize) and source is not None and isinstance(source.producer, Quantize)
        if scale is None or source is None or scale.size == 1 or is_of_weights(layer) or is_told_before:
            continue
        form = "per block" if layer.block_shape or scale.ndim > 1 else f"per index of axis {layer.axis}"
        yield layer, source, f"it has {scale.size} scales, one {form}"


@lint_rule(
    "qdq.scales.chain",
    text="Layers that only move values must keep the scale",
    remedy="Quantize with the scale that the values were dequantized with",
    source=f"{CHAPTER}, Q/DQ Limitations: rewrites compare scales, and are made where they are equal",
)
def scales_chain(view: NetworkView) -> Iterator[Hit]:
    """Dequantized, at most moved, and quantized again by another scale: each such step rounds once more.

    What a concatenation of unequal scales gives is told by the rule on these.
    """
    for quantize in view.quantizes:
        tensor = quantize.inputs[0]
        dequantize = None if tensor is None else view.dequantized_by(tensor)
        if tensor is None or dequantize is None or view.has_mixed_scales(tensor):
            continue
        if not have_equal_scales(dequantize, quantize):
            scales = f"{scale_text(dequantize)} by {dequantize.name!r}, {scale_text(quantize)} by {quantize.name!r}"
            yield quantize, tensor, f"nothing is computed between two scales: {scales}"


@lint_rule(
    "qdq.scales.concatenation",
    text="All inputs of a concatenation must have the same scale",
    remedy="Use the scale of the concatenation's output for all inputs",
    source=f"{CHAPTER}, Q/DQ Limitations: rewrites compare scales, and are made where they are equal",
)
def scales_concatenation(view: NetworkView) -> Iterator[Hit]:
    """A concatenation of dequantized tensors whose scales are not all equal."""
    for layer in view.network.layers:
        if layer.kind != "concatenation":
            continue
        found = [(tensor, view.dequantized_by(tensor)) for tensor in moved_inputs(layer)]
        known = [(tensor, one) for tensor, one in found if one is not None]
        if len(known) < len(found) or not known:
            continue
        other = next((pair for pair in known if not have_equal_scales(pair[1], known[0][1])), None)
        if other is not None:
            first, second = (f"{tensor.name!r} {scale_text(one)}" for tensor, one in (known[0], other))
            yield layer, other[0], f"{first} and {second} differ"


@lint_rule(
    "qdq.type.zero_point",
    text="Quantization must be symmetric, with zero point 0",
    remedy="Quantize symmetrically (ONNX Runtime: ActivationSymmetric and WeightSymmetric)",
    source=f"{CHAPTER}, Introduction to Quantization",
    severity="error",
)
def zero_point(view: NetworkView) -> Iterator[Hit]:
    """A zero point that is not 0, or not known. Told once for a quantization and what dequantizes it."""
    for layer in view.conversions:
        source = layer.inputs[0]
        shift = layer.inputs[2] if len(layer.inputs) > 2 else None
        is_told_before = isinstance(layer, Dequantize) and source is not None and isinstance(source.producer, Quantize)
        if source is None or shift is None or is_told_before:
            continue
        value = shift.spec.value
        if value is None:
            yield layer, source, f"its zero point {shift.name!r} is computed"
        elif value.any():
            numbers = value.reshape(-1)
            yield layer, source, f"its zero point is {numbers[numbers != 0][0]}"


@lint_rule(
    "qdq.type.foreign",
    text="The quantized type must be INT8, FP8, INT4 or FP4",
    remedy="Quantize to INT8 (ONNX Runtime: QuantType.QInt8 for activations and weights)",
    source=f"{CHAPTER}, Introduction to Quantization",
    severity="error",
)
def foreign_type(view: NetworkView) -> Iterator[Hit]:
    """A narrow type that no device has, such as UINT8; told once for a quantization and what dequantizes it."""
    for quantize in view.quantizes:
        tensor = quantize.inputs[0]
        if tensor is not None and not quantize.to_type.is_quantized:
            yield quantize, tensor, f"it is quantized to {quantize.to_type.name}"
    for dequantize in view.dequantizes:
        tensor = dequantize.inputs[0]
        if tensor is None or isinstance(tensor.producer, (Quantize, Dequantize)) or tensor.dtype.is_quantized:
            continue
        yield dequantize, tensor, f"it is of type {tensor.dtype.name}"


@lint_rule(
    "qdq.type.int4_activation",
    text="INT4 is supported for weights only",
    remedy="Keep the activations in floating point: only weights may be INT4",
    source=f"{CHAPTER}, Quantization Schemes",
    severity="error",
)
def int4_activation(view: NetworkView) -> Iterator[Hit]:
    """A tensor that is no constant, quantized to INT4."""
    for quantize in view.quantizes:
        tensor = quantize.inputs[0]
        if tensor is not None and quantize.to_type is DataType.INT4 and not is_of_weights(quantize):
            yield quantize, tensor, "it is not constant, and quantized to INT4"


@lint_rule(
    "qdq.type.fp4_activation",
    text="FP4 activations must be quantized dynamically",
    remedy="Use dynamic quantization, which computes one scale per block",
    source=f"{CHAPTER}, Quantization Schemes and Dynamic Quantization",
)
def fp4_activation(view: NetworkView) -> Iterator[Hit]:
    """A tensor that is no constant, quantized to FP4 with constant scales."""
    for quantize in view.quantizes:
        tensor = quantize.inputs[0]
        is_fixed = quantize.to_type is DataType.FP4 and scale_of(quantize) is not None
        if tensor is not None and is_fixed and not is_of_weights(quantize):
            yield quantize, tensor, "it is not constant, and its scale is fixed"
