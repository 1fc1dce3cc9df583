"""Weighted layers that are left in real numbers."""

from __future__ import annotations

from collections.abc import Iterator

from dryfit.quantization.lint.network_view import NetworkView
from dryfit.quantization.lint.rule import Hit, lint_rule


@lint_rule(
    "qdq.weighted.unquantized",
    text="A weighted layer of a quantized network is quantized",
    remedy="Quantize its data and its weights, unless it is left out for the sake of accuracy",
    severity="note",
)
def weighted_unquantized(view: NetworkView) -> Iterator[Hit]:
    """A weighted layer without any quantized operand, in a network that has quantized ones."""
    if not view.quantizes and not view.dequantizes:
        return
    for layer in view.weighted:
        data = view.data(layer)
        if data and view.weights(layer) is None and not any(view.dequantized_by(tensor) for tensor in data):
            yield layer, data[0], "neither its data nor its weights are quantized"
