"""Activations in INT4."""

from __future__ import annotations

from collections.abc import Iterator

from dryfit.network.data_types import DataType
from dryfit.quantization.lint.network_view import NetworkView, is_of_weights
from dryfit.quantization.lint.rule import CHAPTER, Hit, lint_rule


@lint_rule(
    "qdq.type.int4_activation",
    text="INT4 is for weights",
    remedy="Leave the activations in real numbers: weights alone may be INT4",
    source=f"{CHAPTER}, Quantization Schemes",
    severity="error",
)
def int4_activation(view: NetworkView) -> Iterator[Hit]:
    """A tensor that is no constant, quantized to INT4."""
    for quantize in view.quantizes:
        tensor = quantize.inputs[0]
        if tensor is not None and quantize.to_type is DataType.INT4 and not is_of_weights(quantize):
            yield quantize, tensor, "it is no constant, and quantized to INT4"
