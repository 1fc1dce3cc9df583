"""Normalizations to mean 0 and variance 1, local response normalization, and softmax."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from dryfit.network.data_types import DataType
from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layers.shape_inference import checked_axes, default_axis
from dryfit.network.tensor import Shape, Tensor, TensorSpec


@layer_kind("normalization")
class Normalization(Layer):
    """`(x - mean) / sqrt(variance + epsilon) * scale + bias`; inputs 0 to 2 are x, scale and bias (None: 1 and 0).

    Mean and (population) variance are computed over `axes`. With more than one group, axis 1 is split into `num_groups`
    equal groups of adjacent channels, and mean and variance also extend over each group: this is group normalization,
    with `axes` set to the spatial axes. Scale and bias have the rank of x and broadcast to it; with groups, their axis
    1 may also have one value per group.

    Attributes:
        axes: bit mask; bit i is axis i.
        epsilon: added to the variance.
        num_groups: number of channel groups; 1 for instance and layer normalization.
        compute_precision: the type in which mean, variance and `(x - mean) / sqrt(...)` are computed.

    Source: TensorRT `INormalizationLayer`; ONNX `InstanceNormalization`, `GroupNormalization`, `LayerNormalization`.
    """

    needs_real_numbers = True
    inputs_of_one_type = (0, 1, 2)

    axes: int
    epsilon: float = 1e-5
    num_groups: int = 1
    compute_precision: DataType = DataType.FLOAT

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the input's shape and type."""
        x = self.required(inputs, 0)
        if not x.dtype.is_floating_point or not self.compute_precision.is_floating_point:
            raise self.problem(
                "The input and `compute_precision` of a normalization must be floating point",
                found=f"{x.dtype.text} computed in {self.compute_precision.text}",
                remedy="Add a cast layer before it, or set `compute_precision`",
            )
        axes = checked_axes(self, self.axes, x.rank)
        if self.num_groups < 1:
            raise self.problem(
                "The number of groups must be at least 1", found=self.num_groups, remedy="Set `num_groups`"
            )
        if self.num_groups > 1:
            if 0 in axes or 1 in axes:
                raise self.problem(
                    "With groups, the axes must be spatial",
                    found=axes,
                    allowed="axes from 2 on",
                    remedy="Set the bits of spatial axes in `axes`, or `num_groups` to 1",
                )
            if x.shape[1] >= 0 and x.shape[1] % self.num_groups:
                raise self.problem(
                    "The number of channels must be a multiple of the number of groups",
                    found=f"{x.shape[1]} channels, {self.num_groups} groups",
                    remedy="Set `num_groups` to a divisor of the channels",
                )
        for index, name in ((1, "scale"), (2, "bias")):
            spec = inputs[index] if index < len(inputs) else None
            if spec is not None:
                self._check_factor(name, x.shape, spec.shape)
        return [TensorSpec(x.shape, x.dtype)]

    def _check_factor(self, name: str, shape: Shape, factor: Shape) -> None:
        per_group = factor[1:2] == (self.num_groups,) and len(factor) == len(shape)
        fits = len(factor) == len(shape) and all(
            f in (-1, 1, s) or s == -1 or (axis == 1 and per_group)
            for axis, (s, f) in enumerate(zip(shape, factor, strict=True))
        )
        if not fits:
            # The number of groups is set after adding the layer.
            raise self.problem(
                f"The {name} must broadcast to the input, or have one value per group",
                found=f"{factor} with {self.num_groups} groups",
                allowed=shape,
                is_mendable=True,
                remedy=f"Reshape the {name}",
            )


@layer_kind("lrn")
class Lrn(Layer):
    """`x / (k + alpha / window_size * sum of squares) ^ beta`, the sum over the channels around each channel.

    Attributes:
        window_size: number of channels summed: `(window_size - 1) // 2` before and `window_size // 2` after each
            channel.
        alpha, beta, k: as in the formula.

    Source: TensorRT `ILRNLayer`; ONNX `LRN` (`bias` is k).
    """

    needs_real_numbers = True

    window_size: int
    alpha: float
    beta: float
    k: float

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the input's shape and type."""
        x = self.required(inputs, 0)
        if x.rank < 2 or not (x.dtype.is_floating_point or x.dtype.is_quantized):
            raise self.problem(
                "The input must have a batch and a channel axis, and a floating-point or quantized type",
                found=f"{x.dtype.text}{list(x.shape)}",
                remedy="Add a shuffle or cast layer before it",
            )
        if self.window_size < 1:
            raise self.problem("`window_size` must be at least 1", found=self.window_size, remedy="Set `window_size`")
        return [TensorSpec(x.shape, x.dtype)]


@layer_kind("softmax")
class Softmax(Layer):
    """`exp(x - max) / sum of exp(x - max)`, with maximum and sum over one axis.

    Attributes:
        axes: bit mask with exactly one bit set; bit i is axis i.

    Source: TensorRT `ISoftMaxLayer`.
    """

    needs_real_numbers = True

    axes: int

    @property
    def axis(self) -> int:
        """Axis selected by `axes`."""
        return self.axes.bit_length() - 1

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the input's shape and type."""
        x = self.required(inputs, 0)
        if not x.dtype.is_floating_point and not x.dtype.is_quantized:
            raise self.problem(
                "The input of a softmax must have a floating-point or quantized type",
                found=x.dtype.text,
                remedy="Add a cast layer before it",
            )
        _check_one_axis(self, self.axes, x.rank)
        return [TensorSpec(x.shape, x.dtype)]


class VectorFunction(enum.Enum):
    """Functions of the vectors along an axis."""

    LOG_SOFTMAX = "log_softmax"
    """`x - max - log(sum of exp(x - max))`."""
    L2_NORMALIZATION = "l2_normalization"
    """`x / max(sqrt(sum of x^2), 1e-6)`."""


@layer_kind("vector_function")
class VectorFunctionLayer(Layer):
    """A function of the vectors along one axis that TensorRT lacks; host only.

    Importers use it where a library computes the whole function on codes; otherwise they write it with layers that
    devices support.

    Attributes:
        function: the function.
        axes: bit mask with exactly one bit set; bit i is axis i.

    Source: TFLite `LOG_SOFTMAX`, `L2_NORMALIZATION`.
    """

    needs_real_numbers = True

    function: VectorFunction
    axes: int

    @property
    def host_only_reason(self) -> str:
        """Why no device supports the layer."""
        return f"the function {self.function.name}"

    @property
    def axis(self) -> int:
        """Axis selected by `axes`."""
        return self.axes.bit_length() - 1

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the input's shape and type."""
        x = self.required(inputs, 0)
        if not x.dtype.is_floating_point:
            raise self.problem(
                "The input must have a floating-point type", found=x.dtype.text, remedy="Add a cast layer before it"
            )
        _check_one_axis(self, self.axes, x.rank)
        return [TensorSpec(x.shape, x.dtype)]


def _check_one_axis(layer: Layer, axes: int, rank: int) -> None:
    if len(checked_axes(layer, axes, rank)) != 1:
        raise layer.problem(
            "`axes` must select exactly one axis", found=bin(axes), allowed="one bit", remedy="Set one bit in `axes`"
        )


class AddNormalization:
    """The builder methods of normalizations."""

    def add_normalization(
        self: LayerOwner, input: Tensor, scale: Tensor | None, bias: Tensor | None, axes_mask: int
    ) -> Normalization:
        """Add a normalization over the axes of a bit mask; TensorRT's `add_normalization`."""
        return self.add_layer(Normalization(axes=axes_mask), [input, scale, bias], is_finished=False)

    def add_normalization_v2(
        self: LayerOwner, input: Tensor, scale: Tensor | None, bias: Tensor | None, axes_mask: int
    ) -> Normalization:
        """Add a normalization as ONNX 21 defines it; TensorRT's `add_normalization_v2`.

        Scale and bias have one value per channel, also with `num_groups`, or broadcast to the input. The layer is that
        of `add_normalization`, which accepts one value per group as well.
        """
        return self.add_layer(Normalization(axes=axes_mask), [input, scale, bias], is_finished=False)

    def add_lrn(self: LayerOwner, input: Tensor, window: int, alpha: float, beta: float, k: float) -> Lrn:
        """Add a local response normalization; TensorRT's `add_lrn`."""
        return self.add_layer(Lrn(window_size=window, alpha=alpha, beta=beta, k=k), [input])

    def add_softmax(self: LayerOwner, input: Tensor) -> Softmax:
        """Add a softmax over the third axis from the end, or axis 0; TensorRT's `add_softmax`. Set `axes` to change."""
        return self.add_layer(Softmax(axes=1 << default_axis(len(input.shape))), [input])

    def add_vector_function(
        self: LayerOwner, input: Tensor, function: VectorFunction, axis: int
    ) -> VectorFunctionLayer:
        """Add a function of the vectors along an axis, which TensorRT lacks."""
        return self.add_layer(VectorFunctionLayer(function=function, axes=1 << axis), [input])
