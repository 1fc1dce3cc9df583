"""Scale layers that disappear into the weights of the INT8 layer before them, such as a batch normalization.

The weights are multiplied before they are quantized, so that each channel's scale fits what is multiplied: the network
counts as a floating-point model when its layers are joined.

    weights' = FP32(weights * scale)    bias' = FP32(bias * scale + shift)    each in binary64, rounded once

Source: TensorRT developer guide, Types of Fusions: Convolution and Scale.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dryfit.network.layer import Layer
from dryfit.network.layers.convolution import Convolution
from dryfit.network.layers.deconvolution import Deconvolution
from dryfit.network.layers.fully_connected import FullyConnected
from dryfit.network.layers.kernel_layer import KernelLayer
from dryfit.network.layers.scale import Scale, ScaleMode
from dryfit.quantization.int8_weights import constant_weights

if TYPE_CHECKING:
    from dryfit.builder.precision.chosen import Precisions

Array = np.ndarray[Any, Any]


def can_fold(layer: Layer, scale: Layer) -> bool:
    """Whether a scale layer that reads a layer's output can be part of its weights and bias."""
    if not isinstance(scale, Scale) or constant_weights(layer) is None or len(layer.inputs) > _BIAS:
        return False
    is_linear = scale.power is None or not scale.power.size or bool((scale.power == 1).all())
    return is_linear and scale.mode is not ScaleMode.ELEMENTWISE and _is_of_channels(layer, scale)


_BIAS = 2
"""The input of a layer with weights that is its bias, where it is no parameter."""


def folded_scale(layer: Layer, precisions: Precisions) -> Scale | None:
    """The scale layer that reads an INT8 layer's output and is part of its weights; None where there is none."""
    reader = layer.outputs[0].consumers[0][0] if layer.outputs[0].consumers else None
    return reader if isinstance(reader, Scale) and is_folded(reader, precisions) else None


def is_folded(layer: Layer, precisions: Precisions) -> bool:
    """Whether a layer is part of the weights of the INT8 layer before it."""
    source = layer.inputs[0] if isinstance(layer, Scale) else None
    return source is not None and source.name in precisions.real_tensors


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
