"""Squeeze: axes of extent 1 removed."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layers.shape_inference import known_ints, normalized_axes
from dryfit.network.tensor import Tensor, TensorSpec


@layer_kind("squeeze")
class Squeeze(Layer):
    """The input (0) without the axes that input 1, a constant, names. A negative axis counts from the end.

    Source: TensorRT `ISqueezeLayer`; ONNX `Squeeze`.
    """

    only_moves_values = True

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """The other extents, of the input's type."""
        x, axes_input = self.required(inputs, 0), self.required(inputs, 1)
        known = known_ints(axes_input)
        if known is None:
            raise self.problem("The axes (input 1) are known at build time", remedy="Connect a constant")
        axes = normalized_axes(self, known, x.rank)
        if any(x.shape[axis] not in (1, -1) for axis in axes):
            raise self.problem("A squeezed axis has the extent 1", found=f"axes {known} of {x.shape}")
        return [TensorSpec(tuple(e for axis, e in enumerate(x.shape) if axis not in axes), x.dtype)]


class AddSqueeze:
    """The builder method of squeezes."""

    def add_squeeze(self: LayerOwner, input: Tensor, axes: Tensor) -> Squeeze:
        """Add a squeeze; TensorRT's `add_squeeze`."""
        return self.add_layer(Squeeze(), [input, axes])
