"""Shape: the extents of a tensor, as a tensor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.tensor import Tensor, TensorSpec


@layer_kind("shape")
class ShapeLayer(Layer):
    """The extents of the input, as an INT64 vector; known at build time where the input has no dynamic dimension.

    Source: TensorRT `IShapeLayer` (INT64 since TensorRT 10); ONNX `Shape`.
    """

    has_fixed_types = True

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """`INT64[rank]`."""
        x = self.required(inputs, 0)
        value = np.asarray(x.shape, dtype=np.int64).reshape(-1) if x.is_static else None
        return [TensorSpec((x.rank,), DataType.INT64, value)]


class AddShape:
    """The builder method of shape layers."""

    def add_shape(self: LayerOwner, input: Tensor) -> ShapeLayer:
        """Add a layer that gives a tensor's shape; TensorRT's `add_shape`."""
        return self.add_layer(ShapeLayer(), [input])
