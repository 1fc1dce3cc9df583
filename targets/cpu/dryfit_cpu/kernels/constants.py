"""Weights that are known at build time, as parameters of a layer or as constant inputs."""

from __future__ import annotations

from typing import cast

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.convolution import Convolution, Deconvolution, FullyConnected
from dryfit.network.tensor import Tensor
from dryfit.target.kernels import Array, Specs
from dryfit_cpu.codes import PANEL_CHANNELS

WeightedSum = Convolution | Deconvolution | FullyConnected


def constant_weights(layer: WeightedSum) -> tuple[Array, Array | None]:
    """Kernel, rounded to the type of the layer's input, and bias, which is not.

    Source: as in `dryfit.reference.convolution`.
    """
    values = [layer.kernel, layer.bias]
    for index, tensor in enumerate(layer.inputs[1:3]):
        if tensor is not None:
            values[index] = tensor.spec.value
    kernel = cast("Array", values[0])
    dtype = cast("Tensor", layer.inputs[0]).dtype
    if dtype is not DataType.FLOAT:
        kernel = kernel.astype(dtype.numpy)
    return kernel.astype(np.float32), values[1]


def filled_channels(values: Array) -> Array:
    """Values with their last axis, the channels, filled up with zeros to whole panels; row-major."""
    channels = values.shape[-1]
    filled = np.zeros((*values.shape[:-1], -(-channels // PANEL_CHANNELS) * PANEL_CHANNELS), values.dtype)
    filled[..., :channels] = values
    return filled


def has_constant_weights(layer: WeightedSum, specs: Specs) -> bool:
    """Whether kernel and bias are known at build time."""
    has_kernel = layer.kernel is not None
    for index, tensor in enumerate(layer.inputs[1:3]):
        if tensor is not None:
            if specs[tensor.name].value is None:
                return False
            has_kernel = has_kernel or index == 0
    return has_kernel
