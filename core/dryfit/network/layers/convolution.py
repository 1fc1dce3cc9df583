"""Convolution, deconvolution and fully connected layers: sums over a window, or over a whole sample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from dryfit.network.layer import Inputs, Layer, LayerOwner, Specs, layer_kind
from dryfit.network.layers.kernel_layer import KernelLayer, check_weights, weights_or_none
from dryfit.network.layers.window_layer import PaddingMode, dilated
from dryfit.network.tensor import Shape, Tensor, TensorSpec


@layer_kind("convolution")
class Convolution(KernelLayer):
    """Cross-correlation of `x[N, C, *spatial]` with `kernel[K, C / groups, *window]`, plus `bias[K]`.

    Attributes:
        num_output_maps: K.

    The other parameters are those of `KernelLayer` and `WindowLayer`. The padding is zero.

    Source: TensorRT `IConvolutionLayer`; ONNX `Conv`.
    """

    nothing_left = "The kernel must not be larger than the padded input"

    def kernel_shape(self, channels: int, num_groups: int) -> Shape:
        """Return the shape `(K, C / groups, *window)`."""
        return self.num_output_maps, channels // num_groups if channels >= 0 else -1, *self.kernel_size_nd

    def multiply_accumulates(self, specs: Specs) -> int:
        """Return the multiply-accumulates: each output element sums over the window and its group's channels."""
        channels = max(specs[self.connected_input(0).name].shape[1], 1) // self.num_groups
        return specs[self.outputs[0].name].least_elements * channels * math.prod(self.kernel_size_nd)


@layer_kind("deconvolution")
class Deconvolution(KernelLayer):
    """The transpose of a convolution: each element of `x[N, C, *spatial]` adds a window to the output.

    The kernel is `[C, K / groups, *window]`, a parameter or input 1; the bias is `[K]`, a parameter or input 2.
    An output extent is `(extent - 1) * stride + (window - 1) * dilation + 1 - pre_padding - post_padding`.

    Attributes:
        num_output_maps: K.
        pre_padding, post_padding: elements removed at the start and the end of each spatial axis of the output.
            Default: 0. A negative post-padding adds elements that contain only the bias, which represents ONNX's
            `output_padding`.
        padding_mode: in the SAME modes, an output extent is the input extent times the stride, and the padding is
            computed from it.

    The other parameters are those of `KernelLayer` and `WindowLayer`.

    Source: TensorRT `IDeconvolutionLayer`; ONNX `ConvTranspose`.
    """

    nothing_left = "The padding removes the whole output"

    @property
    def least_post_padding(self) -> None:
        """None, because a negative post-padding adds elements."""

    def paddings(self, spatial: Sequence[int]) -> list[tuple[int, int]]:
        """Return (pre, post) padding per spatial axis, explicit or from the padding mode, for any extents."""
        del spatial
        given = list(zip(self.pre_padding, self.post_padding, strict=True))
        if self.padding_mode not in (PaddingMode.SAME_UPPER, PaddingMode.SAME_LOWER):
            return given
        resolved = []
        for kernel, stride, dilation in zip(self.kernel_size_nd, self.stride_nd, self.dilation_nd, strict=True):
            total = dilated(kernel, dilation) - stride
            small, large = total // 2, total - total // 2
            resolved.append((small, large) if self.padding_mode is PaddingMode.SAME_UPPER else (large, small))
        return resolved

    def output_extents(self, spatial: Sequence[int]) -> tuple[int, ...]:
        """Return the output extent of each spatial axis; -1 if the input's is dynamic, 0 if nothing remains."""
        return tuple(
            -1 if extent < 0 else max((extent - 1) * stride + dilated(kernel, dilation) - pre - post, 0)
            for (extent, kernel, stride, dilation, _, _), (pre, post) in zip(
                self.axes(spatial), self.paddings(spatial), strict=True
            )
        )

    def kernel_shape(self, channels: int, num_groups: int) -> Shape:
        """Return the shape `(C, K / groups, *window)`."""
        return channels, self.num_output_maps // num_groups, *self.kernel_size_nd

    def multiply_accumulates(self, specs: Specs) -> int:
        """Return the multiply-accumulates: each input element adds to the window and its group's output maps."""
        maps = self.num_output_maps // self.num_groups
        return specs[self.connected_input(0).name].least_elements * maps * math.prod(self.kernel_size_nd)


@layer_kind("fully_connected")
class FullyConnected(Layer):
    """`y[..., k, 1, 1] = sum over (c, h, w) of x[..., c, h, w] * kernel[k, (c, h, w)] + bias[k]`.

    The last three axes of the input are summed over, in C order; all axes before them are batch axes.

    Attributes:
        num_output_channels: K.
        kernel: `[K, C * H * W]`, or any array with the same values in that order. None or empty: the kernel is input 1.
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
        """Return `[*batch, K, 1, 1]`, with the type of the input."""
        x = self.required(inputs, 0)
        if not x.dtype.is_floating_point and not x.dtype.is_quantized:
            raise self.problem(
                "The input of a fully connected layer must have a floating-point or quantized type",
                found=x.dtype.text,
                remedy="Add a cast layer before it",
            )
        if x.rank < 3:
            raise self.problem(
                "The input must have a channel axis and two spatial axes",
                found=x.shape,
                allowed="rank 3 or more",
                remedy="Add a shuffle layer that reshapes the input",
            )
        if self.num_output_channels < 1:
            raise self.problem(
                "The number of output channels must be at least 1",
                found=self.num_output_channels,
                remedy="Set `num_output_channels`",
            )
        summed = math.prod(x.shape[-3:]) if min(x.shape[-3:]) >= 0 else -1
        kernel = self.kernel
        if kernel is not None and kernel.size % self.num_output_channels == 0:
            kernel = kernel.reshape(self.num_output_channels, kernel.size // self.num_output_channels)
        check_weights(self, inputs, kernel, self.bias, (self.num_output_channels, summed), self.num_output_channels)
        return [TensorSpec((*x.shape[:-3], self.num_output_channels, 1, 1), x.dtype)]

    def multiply_accumulates(self, specs: Specs) -> int:
        """Return the multiply-accumulates: each output element sums over all of C, H and W."""
        return specs[self.connected_input(0).name].least_elements * self.num_output_channels


class AddConvolution:
    """The builder methods of convolutions, deconvolutions and fully connected layers."""

    def add_convolution_nd(
        self: LayerOwner,
        input: Tensor,
        num_output_maps: int,
        kernel_shape: Sequence[int],
        kernel: np.ndarray[Any, Any] | None = None,
        bias: np.ndarray[Any, Any] | None = None,
    ) -> Convolution:
        """Add a convolution; TensorRT's `add_convolution_nd`. Omit `kernel` to connect it as input 1.

        Raises:
            NetworkError: The weights do not match the input for any number of groups.
        """
        layer = Convolution(
            num_output_maps=num_output_maps, kernel_size_nd=tuple(kernel_shape), kernel=kernel, bias=bias
        )
        return self.add_layer(layer, [input], is_finished=False)

    def add_deconvolution_nd(
        self: LayerOwner,
        input: Tensor,
        num_output_maps: int,
        kernel_shape: Sequence[int],
        kernel: np.ndarray[Any, Any] | None = None,
        bias: np.ndarray[Any, Any] | None = None,
    ) -> Deconvolution:
        """Add a deconvolution; TensorRT's `add_deconvolution_nd`. Omit `kernel` to connect it as input 1.

        Raises:
            NetworkError: The weights do not match the input for any number of groups.
        """
        layer = Deconvolution(
            num_output_maps=num_output_maps, kernel_size_nd=tuple(kernel_shape), kernel=kernel, bias=bias
        )
        return self.add_layer(layer, [input], is_finished=False)

    def add_fully_connected(
        self: LayerOwner,
        input: Tensor,
        num_outputs: int,
        kernel: np.ndarray[Any, Any] | None = None,
        bias: np.ndarray[Any, Any] | None = None,
    ) -> FullyConnected:
        """Add a fully connected layer; TensorRT 8's `add_fully_connected`."""
        return self.add_layer(FullyConnected(num_output_channels=num_outputs, kernel=kernel, bias=bias), [input])
