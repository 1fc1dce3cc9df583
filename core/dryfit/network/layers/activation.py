"""Activations, applied element by element, some with slopes from a tensor; and scale layers."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from dryfit.network.layer import ALL_INPUTS, Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layers.shape_inference import broadcast_shapes
from dryfit.network.tensor import Shape, Tensor, TensorSpec


class ActivationType(enum.Enum):
    """TensorRT's `ActivationType`, and HARD_SWISH, host only; `alpha` and `beta` are the layer's parameters."""

    RELU = "relu"
    SIGMOID = "sigmoid"
    TANH = "tanh"
    LEAKY_RELU = "leaky_relu"
    ELU = "elu"
    SELU = "selu"
    SOFTSIGN = "softsign"
    SOFTPLUS = "softplus"
    CLIP = "clip"
    HARD_SIGMOID = "hard_sigmoid"
    SCALED_TANH = "scaled_tanh"
    THRESHOLDED_RELU = "thresholded_relu"
    GELU_ERF = "gelu_erf"
    GELU_TANH = "gelu_tanh"
    HARD_SWISH = "hard_swish"

    @property
    def is_host_only(self) -> bool:
        """Whether TensorRT lacks the function."""
        return self is ActivationType.HARD_SWISH


@layer_kind("activation")
class Activation(Layer):
    """`type(x; alpha, beta)` of each element; see `dryfit.reference.activation` for the formulas.

    Attributes:
        activation_type: the activation function.
        alpha, beta: parameters of the function, as in TensorRT's `IActivationLayer`.
    """

    activation_type: ActivationType
    alpha: float = 0.0
    beta: float = 0.0

    @property
    def is_host_only(self) -> bool:
        """Whether TensorRT lacks the function."""
        return self.activation_type.is_host_only

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the input's shape and type."""
        x = self.required(inputs, 0)
        if not x.dtype.is_floating_point and not x.dtype.is_quantized:
            raise self.problem(
                "The input of an activation must have a floating-point or quantized type",
                found=x.dtype.text,
                remedy="Add a cast layer before it",
            )
        return [x if x.value is None else TensorSpec(x.shape, x.dtype)]


@layer_kind("parametric_relu")
class ParametricRelu(Layer):
    """`x` if `x >= 0`, otherwise `x * slopes`. The slopes (input 1) broadcast to the input.

    Source: TensorRT `IParametricReLULayer`.
    """

    needs_real_numbers = True
    inputs_of_one_type = ALL_INPUTS

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the input's shape and type."""
        x, slopes = self.required(inputs, 0), self.required(inputs, 1)
        if x.dtype is not slopes.dtype:
            raise self.problem(
                "Input and slopes must have the same type",
                found=f"{x.dtype.text} and {slopes.dtype.text}",
                remedy="Convert the slopes to the type of the input",
            )
        broadcast_shapes(self, x.shape, slopes.shape)
        if any(slope not in (-1, 1) and extent == 1 for extent, slope in zip(x.shape, slopes.shape, strict=True)):
            raise self.problem(
                "The slopes must broadcast to the shape of the input",
                found=f"slopes {slopes.shape} for an input of {x.shape}",
                remedy="Reshape the slopes",
            )
        return [TensorSpec(x.shape, x.dtype)]


class AddActivation:
    """The builder methods of activations."""

    def add_activation(self: LayerOwner, input: Tensor, type: ActivationType) -> Activation:
        """Add an activation layer; TensorRT's `add_activation`. Set `alpha` and `beta` on the layer."""
        return self.add_layer(Activation(activation_type=type), [input])

    def add_parametric_relu(self: LayerOwner, input: Tensor, slopes: Tensor) -> ParametricRelu:
        """Add a parametric ReLU layer; TensorRT's `add_parametric_relu`."""
        return self.add_layer(ParametricRelu(), [input, slopes])


# Scale ----------------------------------------------------------------------------------------------------------------


Weights = np.ndarray[Any, Any] | None


class ScaleMode(enum.Enum):
    """Granularity of the coefficients; TensorRT's `ScaleMode`."""

    UNIFORM = "uniform"
    CHANNEL = "channel"
    ELEMENTWISE = "elementwise"


@layer_kind("scale")
class Scale(Layer):
    """`(x * scale + shift) ^ power`.

    Attributes:
        mode: UNIFORM: one coefficient for the whole tensor; CHANNEL: one per channel; ELEMENTWISE: one per element from
            the channel axis on.
        shift, scale, power: coefficients in C order, in any shape of the required size. None (or empty): 0, 1 and 1.
        channel_axis: index of the channel axis.

    Source: TensorRT `IScaleLayer`.
    """

    mode: ScaleMode
    shift: Weights = attrs.field(default=None, repr=False)
    scale: Weights = attrs.field(default=None, repr=False)
    power: Weights = attrs.field(default=None, repr=False)
    channel_axis: int = 1

    def coefficient_shape(self, shape: Shape) -> Shape:
        """Return the shape of the coefficients in this mode, with the rank of the input."""
        if self.mode is ScaleMode.UNIFORM:
            return (1,) * len(shape)
        kept = range(self.channel_axis, self.channel_axis + 1 if self.mode is ScaleMode.CHANNEL else len(shape))
        return tuple(extent if axis in kept else 1 for axis, extent in enumerate(shape))

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the input's shape and type."""
        x = self.required(inputs, 0)
        if not x.dtype.is_floating_point and not x.dtype.is_quantized:
            raise self.problem(
                "The input of a scale layer must have a floating-point or quantized type",
                found=x.dtype.text,
                remedy="Add a cast layer before it",
            )
        if self.mode is not ScaleMode.UNIFORM and not 0 <= self.channel_axis < x.rank:
            raise self.problem(
                "`channel_axis` must be an axis of the input",
                found=f"axis {self.channel_axis} of shape {x.shape}",
                remedy="Set `channel_axis`, or reshape the input",
            )
        shape = self.coefficient_shape(x.shape)
        for name in ("shift", "scale", "power"):
            weights: Weights = getattr(self, name)
            if weights is not None and weights.size and min(shape, default=1) >= 0 and weights.size != math.prod(shape):
                raise self.problem(
                    f"`{name}` has the wrong number of values for mode {self.mode.name}",
                    found=weights.size,
                    allowed=math.prod(shape),
                    remedy="Set as many values as the mode requires, or change `mode`",
                )
        return [TensorSpec(x.shape, x.dtype)]


class AddScale:
    """The builder methods of scale layers."""

    def add_scale(
        self: LayerOwner,
        input: Tensor,
        mode: ScaleMode,
        shift: Weights = None,
        scale: Weights = None,
        power: Weights = None,
    ) -> Scale:
        """Add a scale layer with channel axis 1; TensorRT's `add_scale`."""
        return self.add_layer(Scale(mode=mode, shift=shift, scale=scale, power=power), [input])

    def add_scale_nd(
        self: LayerOwner,
        input: Tensor,
        mode: ScaleMode,
        shift: Weights = None,
        scale: Weights = None,
        power: Weights = None,
        channel_axis: int = 1,
    ) -> Scale:
        """Add a scale layer with a channel axis; TensorRT's `add_scale_nd`."""
        layer = Scale(mode=mode, shift=shift, scale=scale, power=power, channel_axis=channel_axis)
        return self.add_layer(layer, [input])
