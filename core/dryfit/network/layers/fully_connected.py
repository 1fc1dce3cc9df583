"""Fully connected: each output is a weighted sum of everything in one sample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from dryfit.network.layer import Inputs, Layer, LayerOwner, Specs, layer_kind
from dryfit.network.layers.kernel_layer import check_weights, weights_or_none
from dryfit.network.tensor import Tensor, TensorSpec


@layer_kind("fully_connected")
class FullyConnected(Layer):
    """`y[..., k, 1, 1] = sum over (c, h, w) of x[..., c, h, w] * kernel[k, (c, h, w)] + bias[k]`.

    The last three axes of the input are summed over, in C order; what stands before them is batch.

    Attributes:
        num_output_channels: K.
        kernel: `[K, C * H * W]`, or any array of that many values in that order; None when it is input 1.
            Empty weights are none.
        bias: `[K]`, or None.

    Source: TensorRT 8 `IFullyConnectedLayer`.
    """

    is_weighted = True
    sums_products = True
    flowing_inputs = (0,)
    inputs_of_one_type = (0, 1, 2)

    num_output_channels: int
    kernel: np.ndarray[Any, Any] | None = attrs.field(default=None, converter=weights_or_none, repr=False)
    bias: np.ndarray[Any, Any] | None = attrs.field(default=None, converter=weights_or_none, repr=False)

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """`[*batch, K, 1, 1]` of the input's type."""
        x = self.required(inputs, 0)
        if not x.dtype.is_floating_point and not x.dtype.is_quantized:
            raise self.problem("A fully connected layer takes floating-point or quantized elements", found=x.dtype.name)
        if x.rank < 3:
            raise self.problem("The input has channels and two spatial axes", found=x.shape, allowed="rank 3 or more")
        if self.num_output_channels < 1:
            raise self.problem("There is at least one output channel", found=self.num_output_channels)
        summed = math.prod(x.shape[-3:]) if min(x.shape[-3:]) >= 0 else -1
        kernel = self.kernel
        if kernel is not None and kernel.size % self.num_output_channels == 0:
            kernel = kernel.reshape(self.num_output_channels, kernel.size // self.num_output_channels)
        check_weights(self, inputs, kernel, self.bias, (self.num_output_channels, summed), self.num_output_channels)
        return [TensorSpec((*x.shape[:-3], self.num_output_channels, 1, 1), x.dtype)]

    def multiply_accumulates(self, specs: Specs) -> int:
        """Each output sums over all of C, H and W."""
        return specs[self.connected_input(0).name].least_elements * self.num_output_channels


class AddFullyConnected:
    """The builder method of fully connected layers."""

    def add_fully_connected(
        self: LayerOwner,
        input: Tensor,
        num_outputs: int,
        kernel: np.ndarray[Any, Any] | None = None,
        bias: np.ndarray[Any, Any] | None = None,
    ) -> FullyConnected:
        """Add a fully connected layer; TensorRT 8's `add_fully_connected`."""
        return self.add_layer(FullyConnected(num_output_channels=num_outputs, kernel=kernel, bias=bias), [input])
