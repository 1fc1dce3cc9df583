"""Unsqueeze: axes of extent 1 inserted."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layers.shape_inference import known_ints, normalized_axes
from dryfit.network.tensor import Tensor, TensorSpec


@layer_kind("unsqueeze")
class Unsqueeze(Layer):
    """The input (0) with new axes of extent 1; input 1, a constant, names them as axes of the output.

    Source: TensorRT `IUnsqueezeLayer`; ONNX `Unsqueeze`.
    """

    only_moves_values = True

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """The extents with 1 inserted, of the input's type."""
        x, axes_input = self.required(inputs, 0), self.required(inputs, 1)
        known = known_ints(axes_input)
        if known is None:
            raise self.problem("The axes (input 1) are known at build time", remedy="Connect a constant")
        shape = list(x.shape)
        for axis in normalized_axes(self, known, x.rank + len(known)):
            shape.insert(axis, 1)
        return [TensorSpec(tuple(shape), x.dtype)]


class AddUnsqueeze:
    """The builder method of unsqueezes."""

    def add_unsqueeze(self: LayerOwner, input: Tensor, axes: Tensor) -> Unsqueeze:
        """Add an unsqueeze; TensorRT's `add_unsqueeze`."""
        return self.add_layer(Unsqueeze(), [input, axes])
