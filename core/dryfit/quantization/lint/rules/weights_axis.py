"""Scales of weights along a wrong axis."""

from __future__ import annotations

from collections.abc import Iterator

from dryfit.network.layer import Layer
from dryfit.network.layers.deconvolution import Deconvolution
from dryfit.network.layers.matrix_multiply import MatrixMultiply, MatrixOperation
from dryfit.quantization.lint.network_view import NetworkView, QuantizedWeights, scale_of
from dryfit.quantization.lint.rule import CHAPTER, Hit, lint_rule


@lint_rule(
    "qdq.weights.axis",
    text="The scales of weights follow the axis of the output channels",
    remedy="Quantize along the axis of the output channels",
    source=f"{CHAPTER}, Quantization Modes; ONNX Support (Gemm)",
    severity="error",
)
def weights_axis(view: NetworkView) -> Iterator[Hit]:
    """Weights whose vector of scales follows another axis than that of the output channels."""
    for layer in view.weighted:
        weights = view.weights(layer)
        scale = None if weights is None else scale_of(weights.dequantize)
        if weights is None or weights.is_moved or scale is None or scale.ndim != 1 or scale.size == 1:
            continue
        axis, wanted = weights.dequantize.axis, _channel_axis(layer, weights)
        if wanted is not None and axis != wanted:
            yield layer, weights.tensor, f"the scales follow axis {axis}, and the output channels are axis {wanted}"


def _channel_axis(layer: Layer, weights: QuantizedWeights) -> int | None:
    """The axis of the output channels among those of the weights; None where groups share it, or where it is open."""
    if isinstance(layer, MatrixMultiply):
        rank = weights.tensor.spec.rank
        if weights.operand == 0 or layer.op1 is MatrixOperation.VECTOR or rank < 2:
            return None
        return rank - (1 if layer.op1 is MatrixOperation.NONE else 2)
    if isinstance(layer, Deconvolution):
        return 1 if layer.num_groups == 1 else None
    return 0
