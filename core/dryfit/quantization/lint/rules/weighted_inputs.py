"""Weighted layers of which one operand is quantized."""

from __future__ import annotations

from collections.abc import Iterator

from dryfit.network.data_types import DataType
from dryfit.quantization.lint.network_view import NetworkView
from dryfit.quantization.lint.rule import Hit, lint_rule


@lint_rule(
    "qdq.weighted.inputs",
    text="All inputs of a weighted layer are quantized: its data and its weights",
    remedy="Quantize the other input too, or leave the whole layer in real numbers",
)
def weighted_inputs(view: NetworkView) -> Iterator[Hit]:
    """A weighted layer of which one operand is quantized, and another is not.

    Weights in four bits under data in real numbers are meant so: weight-only quantization.
    """
    for layer in view.weighted:
        weights, data = view.weights(layer), view.data(layer)
        real = [tensor for tensor in data if view.dequantized_by(tensor) is None]
        if view.has_real_weights(layer) and len(real) < len(data):
            yield layer, data[0], "the data is quantized, and the weights are real numbers"
        for tensor in real:
            if weights is not None and _is_weight_only(weights.dequantize.inputs[0]):
                continue
            if weights is not None or len(real) < len(data):
                others = "the weights are" if weights is not None else "the other matrix is"
                yield layer, tensor, f"{others} quantized, and {tensor.name!r} arrives in real numbers"


def _is_weight_only(codes: object) -> bool:
    return getattr(codes, "dtype", None) in (DataType.INT4, DataType.FP4)
