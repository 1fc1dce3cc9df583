"""Deconvolution (transposed convolution) over one, two or three spatial axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dryfit.network.layer import Inputs, LayerOwner, Specs, layer_kind
from dryfit.network.layers.kernel_layer import KernelLayer, check_weights
from dryfit.network.layers.window_layer import PaddingMode, dilated
from dryfit.network.tensor import Shape, Tensor, TensorSpec


@layer_kind("deconvolution")
class Deconvolution(KernelLayer):
    """The transpose of a convolution: each element of `x[N, C, *spatial]` adds a window to the output.

    The kernel is `[C, K / groups, *window]`, a parameter or input 1; the bias is `[K]`, a parameter or input 2.
    An output extent is `(extent - 1) * stride + (window - 1) * dilation + 1 - pre_padding - post_padding`.

    Attributes:
        num_output_maps: K.
        pre_padding, post_padding: elements cut off at the start and the end of each spatial axis of the output; 0
            where not given. A negative post padding adds elements that hold the bias only: this is how ONNX's
            `output_padding` is written.
        padding_mode: for the SAME modes an output extent is the input's times the stride, and the paddings follow.

    The other parameters are those of `KernelLayer` and `WindowLayer`.

    Source: TensorRT `IDeconvolutionLayer`; ONNX `ConvTranspose`.
    """

    @property
    def least_post_padding(self) -> None:
        """None: a negative post padding adds elements."""

    def paddings(self, spatial: Sequence[int]) -> list[tuple[int, int]]:
        """(pre, post) padding of each spatial axis, as given or as the padding mode has it; for any extents."""
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
        """Output extent of each spatial axis; -1 where the input's is dynamic, 0 where nothing is left."""
        return tuple(
            -1 if extent < 0 else max((extent - 1) * stride + dilated(kernel, dilation) - pre - post, 0)
            for (extent, kernel, stride, dilation, _, _), (pre, post) in zip(
                self.axes(spatial), self.paddings(spatial), strict=True
            )
        )

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """`[N, K, *spatial]` of the input's type."""
        x = self.required(inputs, 0)
        channels = self.check_groups(inputs)
        expected, possible = self.kernel_shape(channels, self.num_groups), self.kernel_shapes(channels)
        check_weights(self, inputs, self.kernel, self.bias, expected, self.num_output_maps, possible)
        spatial = self.checked_extents(x.shape, "The paddings leave nothing of the output")
        return [TensorSpec((x.shape[0], self.num_output_maps, *spatial), x.dtype)]

    def kernel_shape(self, channels: int, num_groups: int) -> Shape:
        """`(C, K / groups, *window)`."""
        return channels, self.num_output_maps // num_groups, *self.kernel_size_nd

    def multiply_accumulates(self, specs: Specs) -> int:
        """Each input element is spread over the window and the output maps of its group."""
        maps = self.num_output_maps // self.num_groups
        return specs[self.connected_input(0).name].least_elements * maps * math.prod(self.kernel_size_nd)


class AddDeconvolution:
    """The builder method of deconvolutions."""

    def add_deconvolution_nd(
        self: LayerOwner,
        input: Tensor,
        num_output_maps: int,
        kernel_shape: Sequence[int],
        kernel: np.ndarray[Any, Any] | None = None,
        bias: np.ndarray[Any, Any] | None = None,
    ) -> Deconvolution:
        """Add a deconvolution; TensorRT's `add_deconvolution_nd`. Leave `kernel` out to connect it as input 1.

        Raises:
            NetworkError: the weights do not fit, for any number of groups.
        """
        layer = Deconvolution(
            num_output_maps=num_output_maps, kernel_size_nd=tuple(kernel_shape), kernel=kernel, bias=bias
        )
        return self.add_layer(layer, [input], is_finished=False)
