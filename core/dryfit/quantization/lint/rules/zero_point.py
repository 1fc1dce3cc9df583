"""Zero points other than 0."""

from __future__ import annotations

from collections.abc import Iterator

from dryfit.network.layers.dequantize import Dequantize
from dryfit.network.layers.quantize import Quantize
from dryfit.quantization.lint.network_view import NetworkView
from dryfit.quantization.lint.rule import CHAPTER, Hit, lint_rule


@lint_rule(
    "qdq.type.zero_point",
    text="Quantization is symmetric: there is no zero point but 0",
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
