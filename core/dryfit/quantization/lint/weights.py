"""Rules on scales of weights, and weights in units of their scales: what codes are before rounding and clipping."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.convolution import Deconvolution, FullyConnected
from dryfit.network.layers.kernel_layer import KernelLayer
from dryfit.network.layers.matrix import MatrixMultiply, MatrixOperation
from dryfit.network.tensor import Array
from dryfit.quantization.lint.network_view import CHAPTER, Hit, NetworkView, QuantizedWeights, lint_rule, scale_of
from dryfit.reference.quantization import spread

BOUNDS = {DataType.INT8: (-128.0, 127.0), DataType.INT4: (-8.0, 7.0)}
"""Least and largest code of integer types. In floating-point types a scale loses no codes, only exponents."""


@frozen(eq=False)
class RealCodes:
    """Weights divided by their scales.

    Attributes:
        values: float64, in the shape of the weights; not rounded.
        scales: which scale each weight has: the index of it among all, in the shape of the weights.
        bounds: least and largest code of the type.
    """

    values: Array
    scales: Array
    bounds: tuple[float, float]

    def largest_by_scale(self) -> Array:
        """For each scale the largest magnitude of the weights that share it."""
        largest = np.zeros(int(self.scales.max()) + 1)
        np.maximum.at(largest, self.scales.reshape(-1), np.abs(self.values).reshape(-1))
        return largest


def real_codes(weights: QuantizedWeights) -> RealCodes | None:
    """The weights in units of their scales; None for types without integer codes, and for what is not known."""
    quantized = weights.dequantize.inputs[0]
    values = weights.values
    owner = weights.quantize or weights.dequantize
    scale = scale_of(owner)
    if quantized is None or quantized.dtype not in BOUNDS or values is None or scale is None or not values.size:
        return None

    def over_weights(of_scales: Array) -> Array:
        return np.broadcast_to(spread(owner, of_scales, values.shape, owner.axis, owner.block_shape), values.shape)

    codes = values.astype(np.float64)
    if weights.quantize is not None:
        codes = codes / over_weights(scale.astype(np.float64))
    indices = over_weights(np.arange(scale.size).reshape(scale.shape))
    return RealCodes(np.where(np.isfinite(codes), codes, 0.0), indices, BOUNDS[quantized.dtype])


@lint_rule(
    "qdq.weights.per_tensor",
    text="INT8 weights should have per-channel scales",
    remedy="Quantize the weights per output channel",
)
def weights_per_tensor(view: NetworkView) -> Iterator[Hit]:
    """INT8 weights of several output channels that share one scale."""
    for layer in view.weighted:
        weights = view.weights(layer)
        scale = None if weights is None else scale_of(weights.dequantize)
        if weights is None or scale is None or scale.size != 1:
            continue
        codes, channels = weights.dequantize.inputs[0], _output_channels(layer)
        if codes is not None and codes.dtype is DataType.INT8 and channels > 1:
            yield layer, weights.tensor, f"{channels} output channels share one scale"


def _output_channels(layer: Layer) -> int:
    """Channels of the output; of a product of matrices its columns."""
    if isinstance(layer, KernelLayer):
        return layer.num_output_maps
    return layer.num_output_channels if isinstance(layer, FullyConnected) else layer.outputs[0].shape[-1]


@lint_rule(
    "qdq.weights.axis",
    text="Scales of weights must be along the output channel axis",
    remedy="Quantize along the output channel axis",
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


USED_SHARE = 0.25
"""Share of the codes from which on a channel is told to use too few. Our choice: two bits are lost."""


@lint_rule(
    "qdq.weights.coarse",
    text="Scales of weights should be small enough to use most of the codes",
    remedy="Set each scale to the largest magnitude of its output channel divided by the largest code",
    source=f"{CHAPTER}, on discretization and truncation error; the threshold of {USED_SHARE:.0%} is our choice",
)
def weights_coarse(view: NetworkView) -> Iterator[Hit]:
    """Output channels whose largest weight is a small code, so that few different values are left."""
    for layer in view.weighted:
        weights = view.weights(layer)
        codes = None if weights is None else real_codes(weights)
        if weights is None or codes is None:
            continue
        used = codes.largest_by_scale() / codes.bounds[1]
        coarse = used[(used > 0) & (used < USED_SHARE)]
        if coarse.size:
            what = f"{coarse.size} of {used.size} scales are" if used.size > 1 else "the scale is"
            text = f"{what} so large that the largest weight is code {coarse.min() * codes.bounds[1]:.3g}"
            yield layer, weights.tensor, f"{text} of {codes.bounds[1]:g}"


CLIPPED_SHARE = 0.001
"""Share of weights outside of what their type holds from which on it is told. Our choice: percentile calibration of
weights clips less."""


@lint_rule(
    "qdq.weights.clipped",
    text="Scales of weights should be large enough to clip almost none",
    remedy="Use a larger scale, or per-channel scales",
    source=f"{CHAPTER}, on discretization and truncation error; the threshold of {CLIPPED_SHARE:.1%} is our choice",
)
def weights_clipped(view: NetworkView) -> Iterator[Hit]:
    """Weights in real numbers of which many become the largest code though they are larger."""
    for layer in view.weighted:
        weights = view.weights(layer)
        codes = None if weights is None else real_codes(weights)
        if weights is None or codes is None or weights.quantize is None:
            continue
        least, most = codes.bounds
        # What rounds to the last code is not clipped.
        is_clipped = (codes.values > most + 0.5) | (codes.values < least - 0.5)
        share = float(np.mean(is_clipped))
        if share >= CLIPPED_SHARE:
            largest = float(np.abs(codes.values).max()) / most
            text = f"{share:.2%} of the weights are clipped; the largest is {largest:.3g} times what the scale allows"
            yield layer, weights.tensor, text
