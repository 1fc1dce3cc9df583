"""Parametric ReLU: a leaky ReLU whose slopes are a tensor."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.network.layer import ALL_INPUTS, Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layers.shape_inference import broadcast_shapes
from dryfit.network.tensor import Tensor, TensorSpec


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


class AddParametricRelu:
    """The builder method of parametric ReLUs."""

    def add_parametric_relu(self: LayerOwner, input: Tensor, slopes: Tensor) -> ParametricRelu:
        """Add a parametric ReLU; TensorRT's `add_parametric_relu`."""
        return self.add_layer(ParametricRelu(), [input, slopes])
