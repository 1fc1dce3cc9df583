"""Activations in FP4 with fixed scales."""

from __future__ import annotations

from collections.abc import Iterator

from dryfit.network.data_types import DataType
from dryfit.quantization.lint.network_view import NetworkView, is_of_weights, scale_of
from dryfit.quantization.lint.rule import CHAPTER, Hit, lint_rule


@lint_rule(
    "qdq.type.fp4_activation",
    text="Activations in FP4 have scales that are found while the network runs",
    remedy="Use a dynamic quantization, which finds a scale for each block",
    source=f"{CHAPTER}, Quantization Schemes and Dynamic Quantization",
)
def fp4_activation(view: NetworkView) -> Iterator[Hit]:
    """A tensor that is no constant, quantized to FP4 with constant scales."""
    for quantize in view.quantizes:
        tensor = quantize.inputs[0]
        is_fixed = quantize.to_type is DataType.FP4 and scale_of(quantize) is not None
        if tensor is not None and is_fixed and not is_of_weights(quantize):
            yield quantize, tensor, "it is no constant, and its scale is fixed"
