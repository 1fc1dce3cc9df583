"""Normalization to mean 0 and variance 1: instance, group and layer normalization."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.network.data_types import DataType
from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layers.shape_inference import checked_axes
from dryfit.network.tensor import Shape, Tensor, TensorSpec


@layer_kind("normalization")
class Normalization(Layer):
    """`(x - mean) / sqrt(variance + epsilon) * scale + bias`; inputs 0 to 2 are x, scale and bias (None: 1 and 0).

    Mean and variance (of the whole population) are taken along `axes`. With more than one group, axis 1 is split
    into `num_groups` equal groups of neighbouring channels, and each group is averaged over too: this is group
    normalization, with `axes` the spatial axes. Scale and bias have the rank of x and broadcast to it; with groups,
    axis 1 of them may also have one value a group.

    Attributes:
        axes: bit i is axis i.
        epsilon: added to the variance.
        num_groups: groups of channels; 1 for instance and layer normalization.
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
        """The input's shape and type."""
        x = self.required(inputs, 0)
        if not x.dtype.is_floating_point or not self.compute_precision.is_floating_point:
            raise self.problem(
                "A normalization takes and computes floating-point numbers",
                found=f"{x.dtype.name} computed in {self.compute_precision.name}",
            )
        axes = checked_axes(self, self.axes, x.rank)
        if self.num_groups < 1:
            raise self.problem("There is at least one group", found=self.num_groups)
        if self.num_groups > 1:
            if 0 in axes or 1 in axes:
                raise self.problem("Groups are averaged over spatial axes", found=axes, allowed="axes from 2 on")
            if x.shape[1] >= 0 and x.shape[1] % self.num_groups:
                raise self.problem(
                    "The channels are a multiple of the groups",
                    found=f"{x.shape[1]} channels, {self.num_groups} groups",
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
                f"The {name} broadcasts to the input, or has one value a group",
                found=f"{factor} with {self.num_groups} groups",
                allowed=shape,
                is_mendable=True,
            )


class AddNormalization:
    """The builder method of normalizations."""

    def add_normalization(
        self: LayerOwner, input: Tensor, scale: Tensor | None, bias: Tensor | None, axes_mask: int
    ) -> Normalization:
        """Add a normalization over the axes of a bit mask; TensorRT's `add_normalization`."""
        return self.add_layer(Normalization(axes=axes_mask), [input, scale, bias], is_finished=False)
