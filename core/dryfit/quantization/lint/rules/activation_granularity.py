"""Activations with several scales."""

from __future__ import annotations

from collections.abc import Iterator

from dryfit.network.layers.dequantize import Dequantize
from dryfit.network.layers.quantize import Quantize
from dryfit.quantization.lint.network_view import NetworkView, is_of_weights, scale_of
from dryfit.quantization.lint.rule import CHAPTER, Hit, lint_rule


@lint_rule(
    "qdq.activation.granularity",
    text="Activations have one scale a tensor",
    remedy="Take one scale for the whole tensor; scales a channel are for weights, and scales a block for dynamic ones",
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
        form = "a block" if layer.block_shape or scale.ndim > 1 else f"an index of axis {layer.axis}"
        yield layer, source, f"it has {scale.size} scales, one {form}"
