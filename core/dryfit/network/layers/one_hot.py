"""One-hot: indices turned into vectors that are on at one place."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layers.shape_inference import check_index_type, known_ints, normalized_axes
from dryfit.network.tensor import Tensor, TensorSpec


@layer_kind("one_hot")
class OneHot(Layer):
    """A new axis of extent `depth` that holds `on` at the index and `off` elsewhere.

    Inputs: 0 the indices, 1 the values `[off, on]`, 2 the depth, a scalar. A negative index counts from the end; an
    index out of range turns nothing on.

    Attributes:
        axis: where the new axis stands in the output; negative counts from its end.

    Source: TensorRT `IOneHotLayer`; ONNX `OneHot`.
    """

    axis: int = -1

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """The indices' shape with the new axis, of the values' type."""
        indices, values, depth = (self.required(inputs, index) for index in range(3))
        check_index_type(self, indices, "The indices")
        check_index_type(self, depth, "The depth")
        if values.shape not in ((2,), (-1,)):
            raise self.problem("The values are two: off and on", found=values.shape)
        if depth.shape not in ((), (1,)):
            raise self.problem("The depth is a scalar", found=depth.shape)
        known = known_ints(depth)
        if known is not None and known[0] < 1:
            raise self.problem("The depth is at least 1", found=known[0])
        (axis,) = normalized_axes(self, (self.axis,), indices.rank + 1)
        shape = list(indices.shape)
        shape.insert(axis, -1 if known is None else known[0])
        return [TensorSpec(tuple(shape), values.dtype)]


class AddOneHot:
    """The builder method of one-hot layers."""

    def add_one_hot(self: LayerOwner, indices: Tensor, values: Tensor, depth: Tensor, axis: int) -> OneHot:
        """Add a one-hot layer; TensorRT's `add_one_hot`."""
        return self.add_layer(OneHot(axis=axis), [indices, values, depth])
