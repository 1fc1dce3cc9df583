"""Non-zero: where the elements are that are not zero."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.network.data_types import DataType
from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layers.shape_inference import INDEX_TYPES
from dryfit.network.tensor import Tensor, TensorSpec


@layer_kind("non_zero")
class NonZero(Layer):
    """The indices of the elements that are not zero, in row-major order: `[rank, count]`, and the count is dynamic.

    Attributes:
        indices_type: INT32 or INT64.

    Source: TensorRT `INonZeroLayer`; ONNX `NonZero`.
    """

    indices_type: DataType = DataType.INT32

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """`[rank, -1]`: how many there are depends on the data."""
        if self.indices_type not in INDEX_TYPES:
            raise self.problem("Indices are INT32 or INT64", found=self.indices_type.name)
        return [TensorSpec((self.required(inputs, 0).rank, -1), self.indices_type)]


class AddNonZero:
    """The builder method of non-zero layers."""

    def add_non_zero(self: LayerOwner, input: Tensor, indices_type: DataType = DataType.INT32) -> NonZero:
        """Add a non-zero layer; TensorRT's `add_non_zero`."""
        return self.add_layer(NonZero(indices_type=indices_type), [input])
