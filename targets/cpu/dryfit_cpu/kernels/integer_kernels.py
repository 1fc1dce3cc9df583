"""The quantized constant by which a layer multiplies, by output channels: for every layer that sums products."""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.convolution import Deconvolution
from dryfit.network.layers.matrix import MatrixMultiply, MatrixOperation
from dryfit.network.layers.quantization import Dequantize
from dryfit.network.tensor import Tensor
from dryfit.reference.quantization import spread
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array
from dryfit_cpu.codes import FLOATS


def quantized_kernel(layer: Layer, group: LayerGroup) -> tuple[Array, Array] | None:
    """The kernel of a layer as INT8 `[K, inputs of a channel, ...]`, and its scales as FP64 `[K]` or `[1]`.

    None where it is no constant that the group dequantizes, or has more than one scale an output channel.
    """
    tensor = layer.inputs[1] if len(layer.inputs) > 1 else None
    dequantize = tensor.producer if tensor is not None else None
    if not isinstance(dequantize, Dequantize) or dequantize not in group.layers:
        return None
    values, scales, *zero_points = (cast("Tensor", one).spec.value for one in dequantize.inputs)
    if values is None or scales is None or values.dtype != DataType.INT8.numpy or dequantize.to_type not in FLOATS:
        return None
    if any(one is None or one.any() for one in zero_points):
        return None
    scales = scales.astype(np.float64)
    if scales.size > 1:
        scales = spread(dequantize, scales, values.shape, dequantize.axis, dequantize.block_shape)
    if isinstance(layer, Deconvolution):
        return _of_deconvolution(layer, values, scales)
    axis = 0
    if isinstance(layer, MatrixMultiply):
        axis = values.ndim - (1 if layer.op1 is MatrixOperation.NONE else 2)
        if math.prod(values.shape[:-2]) != 1:
            return None
    if scales.size > 1 and scales.size != scales.shape[axis]:
        return None
    if isinstance(layer, MatrixMultiply):
        matrix = values.reshape(values.shape[-2:])
        values = matrix.T if layer.op1 is MatrixOperation.NONE else matrix
    return values, scales.reshape(-1)


def _of_deconvolution(layer: Deconvolution, values: Array, scales: Array) -> tuple[Array, Array] | None:
    """The kernel `[C, K / groups, ...]` and its scales by output channels."""
    inputs, outputs, *window = values.shape
    groups = layer.num_groups
    kernel = values.reshape(groups, inputs // groups, outputs, *window).swapaxes(1, 2)
    kernel = kernel.reshape(groups * outputs, inputs // groups, *window)
    if scales.size == 1:
        return kernel, scales.reshape(-1)
    if scales.size != scales.shape[0] * scales.shape[1]:
        return None
    by_input = np.broadcast_to(scales.reshape(scales.shape[:2]), (inputs, outputs))
    by_group = by_input.reshape(groups, inputs // groups, outputs)
    if (by_group != by_group[:, :1]).any():
        return None
    return kernel, by_group[:, 0].reshape(-1)
