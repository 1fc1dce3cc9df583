"""Layers with weights: the common base of convolution and deconvolution, and the checks of kernels and biases.

A kernel or bias is either a parameter of the layer or one of its inputs.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np

from dryfit.network.layer import Inputs, Layer, define_layer
from dryfit.network.layers.window_layer import WindowLayer, ints
from dryfit.network.tensor import Shape, TensorSpec
from dryfit.network.weights import Weights


def weights_or_none(value: Any) -> Any:
    """Return the weights as given, or None if they are empty (TensorRT's `Weights()`)."""
    is_empty = isinstance(value, (Weights, np.ndarray)) and np.shape(value) == (0,)
    return None if is_empty else value


def check_weights(
    layer: Layer,
    inputs: Inputs,
    kernel: np.ndarray[Any, Any] | None,
    bias: np.ndarray[Any, Any] | None,
    kernel_shape: Sequence[int],
    output_maps: int,
    shapes_to_be: Iterable[Shape] = (),
) -> None:
    """Check that kernel (parameter or input 1) and bias (parameter or input 2) have the required shapes.

    A missing kernel is not an error here, because an input is connected after the layer is added.

    Args:
        layer: the layer that owns the weights.
        inputs: specs of the inputs of the layer.
        kernel: the kernel parameter.
        bias: the bias parameter.
        kernel_shape: required shape of the kernel; -1 for an extent that the input does not determine.
        output_maps: number of values of the bias.
        shapes_to_be: shapes that become valid through parameters that are set after the layer is added.

    Raises:
        NetworkError: A shape does not match, or weights are given both as a parameter and as an input.
    """
    for index, name, array, expected in (
        (1, "kernel", kernel, tuple(kernel_shape)),
        (2, "bias", bias, (output_maps,)),
    ):
        connected = inputs[index] if len(inputs) > index else None
        if array is not None and connected is not None:
            raise layer.problem(
                f"The {name} must not be given both as a parameter and as input {index}", remedy="Remove one of them"
            )
        found = array.shape if array is not None else connected.shape if connected is not None else None
        if found is None:
            continue
        if not _fits(found, expected):
            flat = (
                f", or {math.prod(expected)} values without extents" if name == "kernel" and -1 not in expected else ""
            )
            raise layer.problem(
                f"The {name} has the wrong shape",
                found=tuple(found),
                allowed=f"{expected}{flat}",
                is_mendable=name == "kernel" and any(_fits(found, shape) for shape in shapes_to_be),
                remedy=f"Reshape the {name} to the required shape",
            )


def _fits(found: Shape, expected: Shape) -> bool:
    return len(found) == len(expected) and all(-1 in (f, e) or f == e for f, e in zip(found, expected, strict=True))


@define_layer
class KernelLayer(WindowLayer):
    """A layer with a kernel over the spatial axes and an optional bias.

    The kernel is either a parameter or input 1 (a constant, a dequantized or a computed tensor); the bias is a
    parameter or input 2.

    Attributes:
        num_output_maps: number of output channels.
        kernel_size_nd: the window, one extent per spatial axis.
        num_groups: number of independent groups into which the input and output channels are split.
        kernel: weights, or None if they are input 1. Empty weights (`Weights()`) mean None, as in TensorRT. Flat
            weights, as in TensorRT, are reshaped when the input is known.
        bias: one value per output map, or None.
    """

    is_weighted = True
    sums_products = True
    flowing_inputs = (0,)
    inputs_of_one_type = (0, 1, 2)
    nothing_left: ClassVar[str]
    """What is wrong where the parameters leave nothing of an axis."""

    num_output_maps: int
    kernel_size_nd: tuple[int, ...] = attrs.field(converter=ints)
    num_groups: int = 1
    kernel: np.ndarray[Any, Any] | None = attrs.field(default=None, converter=weights_or_none, repr=False)
    bias: np.ndarray[Any, Any] | None = attrs.field(default=None, converter=weights_or_none, repr=False)

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return `[N, K, *spatial]`, with the type of the input."""
        x = self.required(inputs, 0)
        channels = self.check_groups(inputs)
        expected, possible = self.kernel_shape(channels, self.num_groups), self.kernel_shapes(channels)
        check_weights(self, inputs, self.kernel, self.bias, expected, self.num_output_maps, possible)
        spatial = self.checked_extents(x.shape, self.nothing_left)
        return [TensorSpec((x.shape[0], self.num_output_maps, *spatial), x.dtype)]

    @abc.abstractmethod
    def kernel_shape(self, channels: int, num_groups: int) -> Shape:
        """Return the kernel's extents for a number of input channels; -1 if they depend on unknown channels."""

    def kernel_shapes(self, channels: int) -> Iterator[Shape]:
        """Return the kernel's extents for each number of groups that divides the input and output channels."""
        common = math.gcd(channels, self.num_output_maps) if channels > 0 else self.num_output_maps
        return (self.kernel_shape(channels, groups) for groups in range(1, common + 1) if not common % groups)

    def settle_weights(self, inputs: Inputs) -> None:
        """Reshape a flat kernel if its size is valid for some number of groups."""
        kernel, x = self.kernel, inputs[0] if inputs else None
        if kernel is None or kernel.ndim != 1 or x is None or x.rank < 2:
            return
        for shape in self.kernel_shapes(x.shape[1]):
            rest = math.prod(extent for extent in shape if extent >= 0)
            if rest == kernel.size or (-1 in shape and rest and kernel.size % rest == 0):
                self.kernel = kernel.reshape(shape)
                return

    @property
    def window_name(self) -> str:
        """Parameter that holds the window: the kernel's extents."""
        return "kernel_size_nd"

    def check_groups(self, inputs: Inputs) -> int:
        """Check the input's type and that the groups divide its channels; return the channels, -1 if dynamic.

        Raises:
            NetworkError: The input type or the number of groups is invalid.
        """
        x = self.required(inputs, 0)
        if not x.dtype.is_floating_point and not x.dtype.is_quantized:
            raise self.problem(
                f"The input of a {self.kind} must have a floating-point or quantized type",
                found=x.dtype.text,
                remedy="Add a cast layer before it",
            )
        self.check_window(x.rank, least_post_padding=self.least_post_padding)
        channels = x.shape[1]
        if self.num_groups < 1 or self.num_output_maps < 1:
            raise self.problem(
                "The numbers of output maps and groups must be at least 1",
                found=f"{self.num_output_maps} maps, {self.num_groups} groups",
                remedy="Set `num_output_maps` and `num_groups`",
            )
        if self.num_output_maps % self.num_groups or (channels >= 0 and channels % self.num_groups):
            raise self.problem(
                "Input and output channels must be multiples of the number of groups",
                found=f"{channels} in, {self.num_output_maps} out, {self.num_groups} groups",
                remedy="Set `num_groups` to a common divisor",
            )
        return channels

    @property
    def least_post_padding(self) -> int | None:
        """The minimum padding after an axis; None if it may be negative."""
        return 0
