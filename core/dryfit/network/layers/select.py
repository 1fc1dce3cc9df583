"""Select: one of two values for each element, by a condition."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.network.data_types import DataType
from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layers.shape_inference import broadcast_shapes, check_same_types
from dryfit.network.tensor import Tensor, TensorSpec


@layer_kind("select")
class Select(Layer):
    """`condition ? then_input : else_input`, element by element (inputs 0, 1, 2). Extents of 1 are repeated.

    Source: TensorRT `ISelectLayer`; ONNX `Where`.
    """

    needs_real_numbers = True
    inputs_of_one_type = (1, 2)

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """The broadcast shape, of the type of the two values."""
        condition, then_input, else_input = (self.required(inputs, index) for index in range(3))
        if condition.dtype is not DataType.BOOL:
            raise self.problem("The condition has the wrong type", found=condition.dtype.name, allowed="BOOL")
        dtype = check_same_types(self, then_input, else_input)
        return [TensorSpec(broadcast_shapes(self, condition.shape, then_input.shape, else_input.shape), dtype)]


class AddSelect:
    """The builder method of selects."""

    def add_select(self: LayerOwner, condition: Tensor, then_input: Tensor, else_input: Tensor) -> Select:
        """Add a select; TensorRT's `add_select`."""
        return self.add_layer(Select(), [condition, then_input, else_input])
