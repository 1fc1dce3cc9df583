"""Activation: one function applied to each element."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
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


class AddActivation:
    """The builder method of activations."""

    def add_activation(self: LayerOwner, input: Tensor, type: ActivationType) -> Activation:
        """Add an activation; TensorRT's `add_activation`. Set `alpha` and `beta` on the layer."""
        return self.add_layer(Activation(activation_type=type), [input])
