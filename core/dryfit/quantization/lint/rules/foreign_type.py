"""Types that no device has."""

from __future__ import annotations

from collections.abc import Iterator

from dryfit.network.layers.dequantize import Dequantize
from dryfit.network.layers.quantize import Quantize
from dryfit.quantization.lint.network_view import NetworkView
from dryfit.quantization.lint.rule import CHAPTER, Hit, lint_rule


@lint_rule(
    "qdq.type.foreign",
    text="Tensors are quantized to INT8, FP8, INT4 or FP4",
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
