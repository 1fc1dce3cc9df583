"""The weights of a layer that is computed in INT8: whole numbers, and a scale for each output channel.

    scale = FP32(max |w| / 127)          the quotient in binary64, rounded once; 1 where all weights are zero
    q     = round(w / scale)             the quotient in FP32, limited to [-127, 127]

The rounding mode is the device's. Biases stay FP32.

Source: TensorRT 10 developer guide, Working with Quantized Types: weights per channel, range [-127, 127]; rounding
modes of the same guide, "Dynamic Range API / Calibration".
"""

from __future__ import annotations

from typing import Any, cast

import attrs
import numpy as np

from dryfit.errors import BuildError
from dryfit.network.layer import Layer
from dryfit.network.layers.deconvolution import Deconvolution
from dryfit.network.layers.fully_connected import FullyConnected
from dryfit.network.layers.kernel_layer import KernelLayer
from dryfit.network.layers.matrix_multiply import MatrixMultiply, MatrixOperation
from dryfit.quantization.rounding import Rounding, round_values

Array = np.ndarray[Any, Any]

LARGEST = 127
"""The largest magnitude of a weight: -128 is not used."""


@attrs.frozen(eq=False)
class Int8Weights:
    """Quantized weights.

    Attributes:
        values: int8, in the shape of the real weights; a fully connected layer's as `[K, C * H * W]`.
        scales: float32: one for each index of `axis`, or one a block.
        axis: the axis of the output channels; -1 where there are blocks.
        block_shape: extents of a block that shares a scale; empty where there are none.
    """

    values: Array
    scales: Array
    axis: int
    block_shape: tuple[int, ...] = ()


def constant_weights(layer: Layer) -> Array | None:
    """The weights of a layer whose weights are known: a parameter, or a constant second input. None for others."""
    if not isinstance(layer, (KernelLayer, FullyConnected, MatrixMultiply)):
        return None
    own = getattr(layer, "kernel", None)
    if own is not None:
        return cast("Array", own)
    tensor = layer.inputs[1] if len(layer.inputs) > 1 else None
    return None if tensor is None or not tensor.dtype.is_floating_point else tensor.spec.value


def int8_weights(layer: Layer, weights: Array, rounding: Rounding) -> Int8Weights:
    """Quantize the weights of a layer.

    Args:
        layer: convolution, deconvolution, fully connected, or a product with a constant matrix.
        weights: its real weights.
        rounding: how the device rounds weights that it quantizes itself.

    Raises:
        BuildError: weights are not finite.
    """
    if not np.isfinite(weights).all():
        raise BuildError(
            "Weights that are not finite cannot be quantized",
            where=layer.where,
            found=f"{np.count_nonzero(~np.isfinite(weights))} of {weights.size}",
            remedy="Set the layer's precision to FLOAT, or mend the model",
        )
    if isinstance(layer, FullyConnected):
        weights = weights.reshape(layer.num_output_channels, -1)
    axis, block = _channels(layer, weights)
    extents = block or tuple(1 if index == axis else extent for index, extent in enumerate(weights.shape))
    counts = tuple(extent // size for extent, size in zip(weights.shape, extents, strict=True))
    split = weights.reshape([part for pair in zip(counts, extents, strict=True) for part in pair])
    largest = np.abs(split).max(axis=tuple(range(1, split.ndim, 2)), initial=0.0)
    scales = int8_scales(largest)
    spread = scales.reshape([part for count in counts for part in (count, 1)])
    with np.errstate(over="ignore"):
        values = round_values(split.astype(np.float32) / spread, rounding)
    values = np.clip(values, -LARGEST, LARGEST).astype(np.int8).reshape(weights.shape)
    return Int8Weights(values, scales if block else scales.reshape(-1), -1 if block else axis, block)


def int8_scales(largest: Array) -> Array:
    """FP32 scales of channels whose largest magnitudes these are."""
    scales = (largest.astype(np.float64) / LARGEST).astype(np.float32)
    # A channel of zeros, or one whose scale is below what FP32 has, is quantized to zeros by any scale.
    return np.where(scales > 0, scales, np.float32(1.0))


def _channels(layer: Layer, weights: Array) -> tuple[int, tuple[int, ...]]:
    """The axis of the output channels, or where groups share it the extents of what belongs to one channel."""
    if isinstance(layer, MatrixMultiply):
        if layer.op1 is MatrixOperation.VECTOR or weights.ndim < 2:
            return -1, weights.shape
        axis = weights.ndim - (1 if layer.op1 is MatrixOperation.NONE else 2)
        return axis, ()
    if isinstance(layer, Deconvolution):
        inputs, _, *window = weights.shape
        return (1, ()) if layer.num_groups == 1 else (-1, (inputs // layer.num_groups, 1, *window))
    return 0, ()
