"""Weights as a device stores them: the integers of a quantized layer, after what is folded into them."""

from __future__ import annotations

from typing import Any

import numpy as np

from dryfit.builder.precision.chosen import Precisions
from dryfit.builder.precision.folded_scales import folded, folded_scale
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.dequantize import Dequantize
from dryfit.network.layers.fully_connected import FullyConnected
from dryfit.network.layers.kernel_layer import KernelLayer
from dryfit.quantization.int8_weights import constant_weights, int8_weights
from dryfit.reference.quantization import spread

Array = np.ndarray[Any, Any]


def stored_weights(layer: Layer, precisions: Precisions) -> Array | None:
    """The weights of a layer of a network that is built; None where they are computed, or it has none.

    Returns:
        int8 for a layer that is computed in INT8 by the ranges of its tensors. Quantized weights of an explicitly
        quantized network, less their zero point, in a type that holds the difference. Else the real weights.
    """
    dequantize = weight_dequantize(layer)
    if dequantize is not None:
        return _integers(dequantize)
    weights = constant_weights(layer)
    if weights is None or not precisions.is_int8(layer):
        return weights
    scale = folded_scale(layer, precisions)
    if scale is not None and isinstance(layer, (KernelLayer, FullyConnected)):
        weights, _ = folded(layer, weights, scale)
    return int8_weights(layer, weights, precisions.weight_rounding[layer.name]).values


def weight_dequantize(layer: Layer) -> Dequantize | None:
    """The layer that dequantizes the second input of another one; None where none does."""
    tensor = layer.inputs[1] if len(layer.inputs) > 1 else None
    producer = None if tensor is None else tensor.producer
    return producer if isinstance(producer, Dequantize) else None


def is_explicit_int8(layer: Layer) -> bool:
    """Whether a layer reads both its data and its weights from INT8 through dequantize layers."""
    data = layer.inputs[0].producer if layer.inputs and layer.inputs[0] is not None else None
    sources = [one.inputs[0] for one in (data, weight_dequantize(layer)) if isinstance(one, Dequantize)]
    return len(sources) == 2 and all(one is not None and one.dtype is DataType.INT8 for one in sources)


def _integers(dequantize: Dequantize) -> Array | None:
    quantized = dequantize.inputs[0]
    values = None if quantized is None else quantized.spec.value
    zero_point = dequantize.inputs[2] if len(dequantize.inputs) > 2 else None
    if values is None or zero_point is None:
        return values
    zeros = zero_point.spec.value
    if zeros is None:
        return None
    return values.astype(np.int16) - spread(
        dequantize, zeros, values.shape, dequantize.axis, dequantize.block_shape
    ).astype(np.int16)
