"""Identity: the input again, under another name, or in another type."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.network.data_types import EXCHANGED_TYPES, STAND_IN_TYPES, DataType
from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.tensor import Tensor, TensorSpec


@layer_kind("identity")
class Identity(Layer):
    """The input, unchanged; with `set_output_type` a cast to that type.

    FLOAT, HALF, BF16 and, with a scale, INT8 stand for one another in a weakly typed network: between these, the output
    type says how the output is stored, as for every other layer.

    Source: TensorRT `IIdentityLayer`; ONNX `Identity`.
    """

    only_moves_values = True

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """The input's shape, type and value; where it casts, the type that is asked for."""
        x = self.required(inputs, 0)
        asked = self.cast_type(x.dtype)
        return [TensorSpec(x.shape, x.dtype, x.value) if asked is None else TensorSpec(x.shape, asked)]

    def cast_type(self, dtype: DataType) -> DataType | None:
        """The type to which elements of `dtype` are cast; None where they stay what they are."""
        asked = self.output_types.get(0)
        is_exchange = dtype in EXCHANGED_TYPES and asked in STAND_IN_TYPES
        return None if asked is dtype or is_exchange else asked


class AddIdentity:
    """The builder method of identities."""

    def add_identity(self: LayerOwner, input: Tensor) -> Identity:
        """Add an identity; TensorRT's `add_identity`."""
        return self.add_layer(Identity(), [input])
