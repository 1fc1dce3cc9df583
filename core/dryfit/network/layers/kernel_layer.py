"""What convolution and deconvolution have in common: a window of weights, groups and a bias."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from dryfit.network.layer import Inputs, define_layer
from dryfit.network.layers.kernel_weights import weights_or_none
from dryfit.network.layers.spatial_window import ints
from dryfit.network.layers.window_layer import WindowLayer


@define_layer
class KernelLayer(WindowLayer):
    """A layer with a kernel over the spatial axes, and a bias.

    The kernel is either a parameter, or input 1 (a constant, a dequantized or a computed tensor); the bias likewise
    is a parameter or input 2.

    Attributes:
        num_output_maps: channels of the output.
        kernel_size_nd: the window, one extent a spatial axis.
        num_groups: channels of input and output are split into this many independent parts.
        kernel: weights, or None when they are input 1. Empty ones (`Weights()`) are none, as in TensorRT.
        bias: weights of one value an output map, or None.
    """

    num_output_maps: int
    kernel_size_nd: tuple[int, ...] = attrs.field(converter=ints)
    num_groups: int = 1
    kernel: np.ndarray[Any, Any] | None = attrs.field(default=None, converter=weights_or_none, repr=False)
    bias: np.ndarray[Any, Any] | None = attrs.field(default=None, converter=weights_or_none, repr=False)

    @property
    def window_name(self) -> str:
        """The kernel's extents are the window."""
        return "kernel_size_nd"

    def check_groups(self, inputs: Inputs) -> int:
        """Check the input's type and that the groups divide its channels; returns those, -1 where dynamic.

        Raises:
            NetworkError: something does not fit.
        """
        x = self.required(inputs, 0)
        if not x.dtype.is_floating_point and not x.dtype.is_quantized:
            raise self.problem(f"A {self.kind} takes floating-point or quantized elements", found=x.dtype.name)
        self.check_window(x.rank, least_post_padding=self.least_post_padding)
        channels = x.shape[1]
        if self.num_groups < 1 or self.num_output_maps < 1:
            raise self.problem(
                "Output maps and groups are at least 1", found=f"{self.num_output_maps} maps, {self.num_groups} groups"
            )
        if self.num_output_maps % self.num_groups or (channels >= 0 and channels % self.num_groups):
            raise self.problem(
                "Input and output channels are multiples of the number of groups",
                found=f"{channels} in, {self.num_output_maps} out, {self.num_groups} groups",
            )
        return channels

    @property
    def least_post_padding(self) -> int | None:
        """The least padding after an axis; None where it may be negative."""
        return 0
