"""The weights of a layer that is computed in INT8: whole numbers, and a scale for each output channel.

    scale = FP32(max |w| / 127)          the quotient in binary64, rounded once; 1 where all weights are zero
    q     = round(w / scale)             the quotient in FP32, limited to [-127, 127]

The rounding mode is the device's. Biases stay FP32.

A scale layer after the layer, such as a batch normalization, disappears into its weights. They are multiplied before
they are quantized, so that each channel's scale fits what is multiplied: the network counts as a floating-point model
when its layers are joined.

    weights' = FP32(weights * scale)    bias' = FP32(bias * scale + shift)    each in binary64, rounded once

Source: TensorRT 10 developer guide, Working with Quantized Types: weights per channel, range [-127, 127]; rounding
modes of the same guide, "Dynamic Range API / Calibration"; Types of Fusions: Convolution and Scale.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.errors import BuildError
from dryfit.network.layer import Layer
from dryfit.network.layers.activation import Scale, ScaleMode
from dryfit.network.layers.convolution import Convolution, Deconvolution, FullyConnected
from dryfit.network.layers.kernel_layer import KernelLayer
from dryfit.network.layers.matrix import MatrixMultiply, MatrixOperation
from dryfit.network.tensor import Array
from dryfit.quantization.rounding import Rounding, round_values

LARGEST = 127
"""The largest magnitude of a weight: -128 is not used."""


@frozen(eq=False)
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
            "Quantized weights must be finite",
            where=layer.where,
            found=f"{np.count_nonzero(~np.isfinite(weights))} of {weights.size}",
            remedy="Set the precision of the layer to FP32, or fix the weights",
        )
    if isinstance(layer, FullyConnected):
        weights = weights.reshape(layer.num_output_channels, -1)
    axis, block = _channels(layer, weights)
    split, counts = _split(weights, axis, block)
    largest = _magnitudes(split)
    scales = int8_scales(largest)
    spread = scales.reshape([part for count in counts for part in (count, 1)])
    with np.errstate(over="ignore"):
        values = round_values(split.astype(np.float32) / spread, rounding)
    values = np.clip(values, -LARGEST, LARGEST).astype(np.int8).reshape(weights.shape)
    return Int8Weights(values, scales if block else scales.reshape(-1), -1 if block else axis, block)


def channel_magnitudes(layer: Layer, weights: Array) -> Array:
    """The largest magnitude of each part of a layer's weights that has a scale of its own.

    Args:
        layer: as for `int8_weights`.
        weights: its real weights, all finite.

    Returns:
        `[channels]`, in the type of the weights.
    """
    if isinstance(layer, FullyConnected):
        weights = weights.reshape(layer.num_output_channels, -1)
    split, _ = _split(weights, *_channels(layer, weights))
    return _magnitudes(split).reshape(-1)


def _split(weights: Array, axis: int, block: tuple[int, ...]) -> tuple[Array, tuple[int, ...]]:
    """The weights with each axis split into (parts, extent of a part), and the numbers of parts."""
    extents = block or tuple(1 if index == axis else extent for index, extent in enumerate(weights.shape))
    counts = tuple(extent // size for extent, size in zip(weights.shape, extents, strict=True))
    return weights.reshape([part for pair in zip(counts, extents, strict=True) for part in pair]), counts


def _magnitudes(split: Array) -> Array:
    found: Array = np.abs(split).max(axis=tuple(range(1, split.ndim, 2)), initial=0.0)
    return found


def int8_scales(largest: Array) -> Array:
    """FP32 scales of channels whose largest magnitudes these are."""
    scales = (largest.astype(np.float64) / LARGEST).astype(np.float32)
    # A channel of zeros, or one whose scale is below what FP32 has, is quantized to zeros by any scale.
    return np.where(scales > 0, scales, np.float32(1.0))


def rounded_by_output_channel(weights: Array) -> Array:
    """The real values, float64, of the nearest INT8 codes of a convolution's weights `[K, C / groups, ...]`."""
    scales = int8_scales(np.abs(weights).max(axis=tuple(range(1, weights.ndim)), keepdims=True)).astype(np.float64)
    return np.asarray(np.rint(weights / scales) * scales)


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


def can_fold(layer: Layer, scale: Layer) -> bool:
    """Whether a scale layer that reads a layer's output can be part of its weights and bias."""
    if not isinstance(scale, Scale) or constant_weights(layer) is None or len(layer.inputs) > _BIAS:
        return False
    is_linear = scale.power is None or not scale.power.size or bool((scale.power == 1).all())
    return is_linear and scale.mode is not ScaleMode.ELEMENTWISE and _is_of_channels(layer, scale)


_BIAS = 2
"""The input of a layer with weights that is its bias, where it is no parameter."""


def folded_scale(layer: Layer, real_tensors: Collection[str]) -> Scale | None:
    """The scale layer that reads an INT8 layer's output and is part of its weights; None where there is none.

    Args:
        layer: computed in INT8.
        real_tensors: names of the tensors inside steps of INT8 layers.
    """
    reader = layer.outputs[0].consumers[0][0] if layer.outputs[0].consumers else None
    return reader if isinstance(reader, Scale) and is_folded(reader, real_tensors) else None


def is_folded(layer: Layer, real_tensors: Collection[str]) -> bool:
    """Whether a layer is part of the weights of the INT8 layer before it."""
    source = layer.inputs[0] if isinstance(layer, Scale) else None
    return source is not None and source.name in real_tensors


def folded(layer: KernelLayer | FullyConnected, weights: Array, scale: Scale) -> tuple[Array, Array]:
    """The weights and the bias of a layer with those of a scale layer after it.

    Args:
        layer: the one with weights.
        weights: its real weights.
        scale: one for which `can_fold` is true.

    Returns:
        float32, in the shape of `weights`, and float32 `[K]`.
    """
    K = layer.num_output_channels if isinstance(layer, FullyConnected) else layer.num_output_maps
    factor, shift = _coefficients(scale.scale, 1.0, K), _coefficients(scale.shift, 0.0, K)
    bias = np.zeros(K) if layer.bias is None else layer.bias.astype(np.float64).reshape(K)
    if isinstance(layer, FullyConnected):
        weights = weights.reshape(K, -1)
    along = [1] * weights.ndim
    along[1 if isinstance(layer, Deconvolution) else 0] = K
    wide = weights.astype(np.float64) * factor.reshape(along)
    return wide.astype(np.float32), (bias * factor + shift).astype(np.float32)


def _coefficients(given: Array | None, absent: float, count: int) -> Array:
    if given is None or not given.size:
        return np.full(count, absent)
    return np.broadcast_to(given.astype(np.float64).reshape(-1), count)


def _is_of_channels(layer: Layer, scale: Scale) -> bool:
    """Whether the channels of a scale layer are the output channels of the layer before it."""
    rank = len(layer.outputs[0].shape)
    if isinstance(layer, FullyConnected):
        axis = rank - 3
    elif isinstance(layer, Convolution) or (isinstance(layer, Deconvolution) and layer.num_groups == 1):
        axis = 1
    else:
        return False
    return scale.mode is ScaleMode.UNIFORM or scale.channel_axis == axis


# Patterns of zeros ----------------------------------------------------------------------------------------------------


@frozen
class SparsePattern:
    """At most `kept` values other than 0 in each aligned group of `group` neighbours along one axis.

    A last group that is not full counts as if zeros filled it up.

    Attributes:
        kept: how many of a group may be other than 0.
        group: how many neighbours make a group.
        axis: of the weights, along which the neighbours lie; 1 is the input channels of a convolution's `[K, C, R, S]`.

    Example:
        >>> pattern = SparsePattern(kept=2, group=4, axis=0)
        >>> pattern.dense_groups(np.array([1, 0, 0, 2, 3, 4, 5, 0]))
        1
        >>> pattern.pruned(np.array([1.0, -3.0, 2.0, -1.0]))
        array([ 0., -3.,  2.,  0.])
    """

    kept: int
    group: int
    axis: int = 1

    @property
    def text(self) -> str:
        """As people write it: `2:4`."""
        return f"{self.kept}:{self.group}"

    def groups(self, shape: tuple[int, ...]) -> int:
        """How many groups weights of a shape have."""
        extent = shape[self.axis]
        others = int(np.prod(shape, dtype=np.int64)) // max(extent, 1)
        return others * -(-extent // self.group)

    def dense_groups(self, values: Array) -> int:
        """How many groups have more values other than 0 than the pattern allows; 0 means that it holds."""
        counts = np.count_nonzero(self._grouped(values != 0), axis=self.axis + 1)
        return int(np.count_nonzero(counts > self.kept))

    def kept_places(self, magnitudes: Array) -> Array:
        """Which values of each group are kept: the largest; of equal ones those that stand first.

        Args:
            magnitudes: of the weights, at least 0.

        Returns:
            bool, in the shape of `magnitudes`.
        """
        grouped = self._grouped(magnitudes, absent=-1)
        along = self.axis + 1
        largest_first = np.argsort(-grouped, axis=along, kind="stable")
        first = np.take(largest_first, np.arange(self.kept), axis=along)
        places = np.zeros(grouped.shape, np.bool_)
        np.put_along_axis(places, first, True, axis=along)
        extents = list(magnitudes.shape)
        extents[self.axis] = -1
        return np.take(places.reshape(extents), np.arange(magnitudes.shape[self.axis]), axis=self.axis)

    def pruned(self, values: Array, magnitudes: Array | None = None, zero: Array | int = 0) -> Array:
        """A copy of weights of which only the largest of each group are left.

        Args:
            values: real numbers, or the integers of quantized ones.
            magnitudes: what is compared; None: the absolute values.
            zero: what stands for 0 among quantized values; broadcasts against `values`.
        """
        if magnitudes is None:
            wide = np.float64 if values.dtype == np.float64 else np.float32  # |-128| is no int8
            magnitudes = np.abs(values.astype(wide))
        return np.where(self.kept_places(magnitudes), values, np.asarray(zero, values.dtype))

    def _grouped(self, values: Array, absent: float = 0) -> Array:
        """The values with the axis split into (groups, members); what a last group lacks is `absent`."""
        extent = values.shape[self.axis]
        missing = -extent % self.group
        if missing:
            widths = [(0, missing if axis == self.axis else 0) for axis in range(values.ndim)]
            values = np.pad(values, widths, constant_values=absent)
        shape = values.shape
        return values.reshape((*shape[: self.axis], -1, self.group, *shape[self.axis + 1 :]))
