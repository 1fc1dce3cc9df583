"""Weights that are known at build time, as parameters of a layer or as constant inputs.

And layers that multiply by known numbers and add known numbers: they fold into weights, and into one another.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.activation import Scale, ScaleMode
from dryfit.network.layers.convolution import Convolution, Deconvolution, FullyConnected
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation
from dryfit.network.layers.quantization import Dequantize
from dryfit.network.tensor import Tensor
from dryfit.reference.registry import evaluate
from dryfit.target.kernels import Array, Specs
from dryfit_cpu.codes import FLOATS, PANEL_CHANNELS

WeightedSum = Convolution | Deconvolution | FullyConnected


def constant_weights(layer: WeightedSum) -> tuple[Array, Array | None]:
    """Kernel, rounded to the type of the layer's input, and bias, which is not.

    Source: as in `dryfit.reference.convolution`.
    """
    values = [layer.kernel, layer.bias]
    for index, tensor in enumerate(layer.inputs[1:3]):
        if tensor is not None:
            values[index] = _known_value(tensor)
    kernel = cast("Array", values[0])
    dtype = cast("Tensor", layer.inputs[0]).dtype
    if dtype is not DataType.FLOAT:
        kernel = kernel.astype(dtype.numpy)
    return kernel.astype(np.float32), values[1]


def _is_dequantized_constant(tensor: Tensor) -> bool:
    """Whether a dequantize layer gives these numbers from known ones."""
    layer = tensor.producer
    return isinstance(layer, Dequantize) and all(one is None or one.spec.value is not None for one in layer.inputs)


def _known_value(tensor: Tensor) -> Array | None:
    """The value of a constant, or of one that is dequantized."""
    if tensor.spec.value is not None or not _is_dequantized_constant(tensor):
        return tensor.spec.value
    layer = cast("Dequantize", tensor.producer)
    (value,) = evaluate(layer, [None if one is None else one.spec.value for one in layer.inputs])
    return value


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
            if specs[tensor.name].value is None and not _is_dequantized_constant(tensor):
                return False
            has_kernel = has_kernel or index == 0
    return has_kernel


@frozen(eq=False)
class Affine:
    """`factor * x + shift`.

    Attributes:
        axis: the axis of x along which factor and shift are; None where they are one number each.
        factor, shift: FP32 `[extent of the axis]` or `[1]`.
    """

    axis: int | None
    factor: Array
    shift: Array

    def then(self, following: Affine) -> Affine | None:
        """Both in one, as `following` of the result of this; None where they are along different axes.

        Rounds otherwise than one after the other, by units in the last place.
        """
        if self.axis is not None and following.axis not in (None, self.axis):
            return None
        axis = following.axis if self.axis is None else self.axis
        return Affine(axis, self.factor * following.factor, self.shift * following.factor + following.shift)


def affine_of(layer: Layer, value: Tensor) -> Affine | None:
    """What a layer does with its input `value`; None where it is more than this, or with numbers not known.

    A scale layer, or a sum, difference or product with a constant that has one axis beyond extent 1 at most.
    """
    if isinstance(layer, Scale):
        if layer.mode is ScaleMode.ELEMENTWISE or has_power(layer):
            return None
        axis = layer.channel_axis if layer.mode is ScaleMode.CHANNEL else None
        return Affine(axis, coefficient(layer.scale, 1.0), coefficient(layer.shift, 0.0))
    if not isinstance(layer, Elementwise) or layer.op not in _OPERATIONS:
        return None
    others = [cast("Tensor", tensor) for tensor in layer.inputs if tensor is not value]
    if len(others) != 1 or not _is_along_one_axis(others[0], value):
        return None
    if layer.op is ElementWiseOperation.SUB and layer.inputs[0] is not value:
        return None
    numbers = cast("Array", others[0].spec.value).astype(np.float32).ravel()
    axis = next((axis for axis, extent in enumerate(others[0].shape) if extent > 1), None)
    one, zero = np.ones(1, np.float32), np.zeros(1, np.float32)
    if layer.op is ElementWiseOperation.PROD:
        return Affine(axis, numbers, zero)
    return Affine(axis, one, -numbers if layer.op is ElementWiseOperation.SUB else numbers)


def coefficient(weights: Array | None, default: float) -> Array:
    """A scale layer's coefficients as FP32 of one axis."""
    return (
        np.array([default], np.float32) if weights is None or not weights.size else weights.astype(np.float32).ravel()
    )


def has_power(scale: Scale) -> bool:
    """Whether a scale layer has a power other than 1."""
    return bool((coefficient(scale.power, 1.0) != 1.0).any())


_OPERATIONS = (ElementWiseOperation.PROD, ElementWiseOperation.SUM, ElementWiseOperation.SUB)


def _is_along_one_axis(other: Tensor, value: Tensor) -> bool:
    """Whether a tensor is a constant of the value's type that broadcasts to it from one axis, or from none."""
    long = [(extent, whole) for extent, whole in zip(other.shape, value.shape, strict=False) if extent != 1]
    return (
        other.spec.value is not None
        and value.spec.value is None
        and other.dtype is value.dtype
        and value.dtype in FLOATS
        and len(other.shape) == len(value.shape)
        and len(long) <= 1
        and all(extent == whole for extent, whole in long)
    )
