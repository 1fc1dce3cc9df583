"""Softmax over one axis."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layers.shape_inference import checked_axes, default_axis
from dryfit.network.tensor import Tensor, TensorSpec


@layer_kind("softmax")
class Softmax(Layer):
    """`exp(x - max) / sum of exp(x - max)`, maximum and sum over one axis.

    Attributes:
        axes: a bit mask with one bit set: bit i is axis i.

    Source: TensorRT `ISoftMaxLayer`.
    """

    needs_real_numbers = True

    axes: int

    @property
    def axis(self) -> int:
        """The axis that `axes` names."""
        return self.axes.bit_length() - 1

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """The input's shape and type."""
        x = self.required(inputs, 0)
        if not x.dtype.is_floating_point and not x.dtype.is_quantized:
            raise self.problem("Softmax takes floating-point or quantized elements", found=x.dtype.name)
        if len(checked_axes(self, self.axes, x.rank)) != 1:
            raise self.problem("Softmax is over one axis", found=bin(self.axes), allowed="one bit")
        return [TensorSpec(x.shape, x.dtype)]


class AddSoftmax:
    """The builder method of softmax layers."""

    def add_softmax(self: LayerOwner, input: Tensor) -> Softmax:
        """Add a softmax over the third axis from the end, or axis 0; TensorRT's `add_softmax`. Set `axes` to change."""
        return self.add_layer(Softmax(axes=1 << default_axis(len(input.shape))), [input])
