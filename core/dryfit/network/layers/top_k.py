"""Top-k: the largest or smallest elements along an axis, with their indices."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from dryfit.network.data_types import DataType
from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layers.shape_inference import checked_axes
from dryfit.network.tensor import Tensor, TensorSpec


class TopKOperation(enum.Enum):
    """TensorRT's `TopKOperation`."""

    MAX = "max"
    MIN = "min"


@layer_kind("top_k", "TOPK")
class TopK(Layer):
    """The k largest (MAX, in descending order) or smallest (MIN, ascending) elements, and their indices.

    Of equal elements the one with the lower index comes first. A NaN is larger than every number.

    Attributes:
        op: MAX or MIN.
        k: how many, 1 or more; input 1, an integer scalar of 0 or more, replaces it where
            connected.
        axes: a bit mask with one bit set.
        indices_type: type of the second output, INT32 or INT64.

    Source: TensorRT `ITopKLayer`; the order of equal elements is ONNX's.
    """

    needs_real_numbers = True

    op: TopKOperation
    k: int
    axes: int
    indices_type: DataType = DataType.INT32

    @property
    def axis(self) -> int:
        """The axis that `axes` names."""
        return self.axes.bit_length() - 1

    @property
    def output_count(self) -> int:
        """Two outputs."""
        return 2

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Values (the input's type) and indices, with k elements along the axis; -1 where k is not known yet."""
        x = self.required(inputs, 0)
        if len(checked_axes(self, self.axes, x.rank)) != 1:
            raise self.problem("Top-k is along one axis", found=bin(self.axes), allowed="one bit")
        if self.indices_type not in (DataType.INT32, DataType.INT64):
            raise self.problem("Indices are INT32 or INT64", found=self.indices_type.name)
        k, least = self.k, 1
        if len(inputs) > 1 and inputs[1] is not None:
            value = inputs[1].value
            if value is not None and value.size != 1:
                raise self.problem("Input 1, k, is one number", found=f"{value.size} numbers")
            # A k that is computed may come out as 0: the result is empty then.
            k, least = (-1, -1) if value is None else (int(value.item()), 0)
        extent = x.shape[self.axis]
        if k < least or (extent >= 0 and k > extent):
            raise self.problem(
                f"k is between {least} and the extent of the axis",
                found=k,
                allowed=f"{least} to {extent}" if extent >= 0 else f"{least} or more",
            )
        shape = (*x.shape[: self.axis], k, *x.shape[self.axis + 1 :])
        return [TensorSpec(shape, x.dtype), TensorSpec(shape, self.indices_type)]


class AddTopK:
    """The builder method of top-k layers."""

    def add_topk(
        self: LayerOwner,
        input: Tensor,
        op: TopKOperation,
        k: int,
        axes: int,
        indices_type: DataType = DataType.INT32,
    ) -> TopK:
        """Add a top-k along the axis of a bit mask; TensorRT's `add_topk`. Connect input 1 for a k known later."""
        return self.add_layer(TopK(op=op, k=k, axes=axes, indices_type=indices_type), [input])
