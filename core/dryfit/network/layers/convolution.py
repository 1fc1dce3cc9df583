"""Convolution over one, two or three spatial axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dryfit.network.layer import Inputs, LayerOwner, Specs, layer_kind
from dryfit.network.layers.kernel_layer import KernelLayer, check_weights
from dryfit.network.tensor import Shape, Tensor, TensorSpec


@layer_kind("convolution")
class Convolution(KernelLayer):
    """Cross-correlation of `x[N, C, *spatial]` with `kernel[K, C / groups, *window]`, plus `bias[K]`.

    Attributes:
        num_output_maps: K.

    The other parameters are those of `KernelLayer` and `WindowLayer`; paddings are zeros.

    Source: TensorRT `IConvolutionLayer`; ONNX `Conv`.
    """

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """`[N, K, *spatial]` of the input's type."""
        x = self.required(inputs, 0)
        channels = self.check_groups(inputs)
        expected, possible = self.kernel_shape(channels, self.num_groups), self.kernel_shapes(channels)
        check_weights(self, inputs, self.kernel, self.bias, expected, self.num_output_maps, possible)
        spatial = self.checked_extents(x.shape, "The kernel is larger than the padded input")
        return [TensorSpec((x.shape[0], self.num_output_maps, *spatial), x.dtype)]

    def kernel_shape(self, channels: int, num_groups: int) -> Shape:
        """`(K, C / groups, *window)`."""
        return self.num_output_maps, channels // num_groups if channels >= 0 else -1, *self.kernel_size_nd

    def multiply_accumulates(self, specs: Specs) -> int:
        """Each output element sums over the window and the channels of its group."""
        channels = max(specs[self.connected_input(0).name].shape[1], 1) // self.num_groups
        return specs[self.outputs[0].name].least_elements * channels * math.prod(self.kernel_size_nd)


class AddConvolution:
    """The builder method of convolutions."""

    def add_convolution_nd(
        self: LayerOwner,
        input: Tensor,
        num_output_maps: int,
        kernel_shape: Sequence[int],
        kernel: np.ndarray[Any, Any] | None = None,
        bias: np.ndarray[Any, Any] | None = None,
    ) -> Convolution:
        """Add a convolution; TensorRT's `add_convolution_nd`. Leave `kernel` out to connect it as input 1.

        Raises:
            NetworkError: the weights do not fit, for any number of groups.
        """
        layer = Convolution(
            num_output_maps=num_output_maps, kernel_size_nd=tuple(kernel_shape), kernel=kernel, bias=bias
        )
        return self.add_layer(layer, [input], is_finished=False)
