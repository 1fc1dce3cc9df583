"""Activations: one function applied to each element, some with slopes that are a tensor."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from dryfit.network.layer import ALL_INPUTS, Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layers.shape_inference import broadcast_shapes
from dryfit.network.tensor import Tensor, TensorSpec


class ActivationType(enum.Enum):
    """TensorRT's `ActivationType`; `alpha` and `beta` are the layer's parameters."""

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


@layer_kind("activation")
class Activation(Layer):
    """`type(x; alpha, beta)` of each element; the formulas stand in `dryfit.reference.activation`.

    Attributes:
        activation_type: the function.
        alpha, beta: its parameters, as TensorRT's `IActivationLayer` uses them.
    """

    activation_type: ActivationType
    alpha: float = 0.0
    beta: float = 0.0

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """The input's shape and type."""
        x = self.required(inputs, 0)
        if not x.dtype.is_floating_point and not x.dtype.is_quantized:
            raise self.problem("An activation takes floating-point or quantized elements", found=x.dtype.name)
        return [TensorSpec(x.shape, x.dtype)]


@layer_kind("parametric_relu")
class ParametricRelu(Layer):
    """`x` where it is at least 0, else `x * slopes`; input 1, the slopes, broadcasts to the input.

    Source: TensorRT `IParametricReLULayer`.
    """

    needs_real_numbers = True
    inputs_of_one_type = ALL_INPUTS

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """The input's shape and type."""
        x, slopes = self.required(inputs, 0), self.required(inputs, 1)
        if x.dtype is not slopes.dtype:
            raise self.problem("Input and slopes have one type", found=f"{x.dtype.name} and {slopes.dtype.name}")
        broadcast_shapes(self, x.shape, slopes.shape)
        if any(slope not in (-1, 1) and extent == 1 for extent, slope in zip(x.shape, slopes.shape, strict=True)):
            raise self.problem(
                "The slopes broadcast to the input, not the input to the slopes",
                found=f"slopes {slopes.shape} for an input of {x.shape}",
            )
        return [TensorSpec(x.shape, x.dtype)]


class AddActivation:
    """The builder methods of activations."""

    def add_activation(self: LayerOwner, input: Tensor, type: ActivationType) -> Activation:
        """Add an activation; TensorRT's `add_activation`. Set `alpha` and `beta` on the layer."""
        return self.add_layer(Activation(activation_type=type), [input])

    def add_parametric_relu(self: LayerOwner, input: Tensor, slopes: Tensor) -> ParametricRelu:
        """Add a parametric ReLU; TensorRT's `add_parametric_relu`."""
        return self.add_layer(ParametricRelu(), [input, slopes])
