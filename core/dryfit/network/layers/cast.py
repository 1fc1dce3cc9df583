"""Cast: the same values in another type."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from dryfit.network.data_types import DataType
from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.tensor import Tensor, TensorSpec


class CastRounding(enum.Enum):
    """How a cast to E8M0, which holds powers of two, rounds: ONNX's `round_mode`. Other types round to nearest even."""

    UP = "up"
    DOWN = "down"
    NEAREST = "nearest"


@layer_kind("cast")
class Cast(Layer):
    """The input's values in another type.

    Floating point to integer drops the fraction, integer to a narrower integer keeps the low bits, anything to BOOL is
    `x != 0`, and a wider to a narrower floating-point type rounds to nearest even.

    Attributes:
        to_type: of the output.
        saturate: for 8-bit floating-point outputs: values out of range become the largest finite value, or else NaN or
            infinity, as the type has it.
        e8m0_rounding: for the output E8M0 only.

    Source: TensorRT `ICastLayer`; ONNX `Cast`.
    """

    is_conversion = True
    has_fixed_types = True

    to_type: DataType
    saturate: bool = True
    e8m0_rounding: CastRounding = CastRounding.UP

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """The input's shape."""
        return [TensorSpec(self.required(inputs, 0).shape, self.to_type)]


class AddCast:
    """The builder method of casts."""

    def add_cast(self: LayerOwner, input: Tensor, to_type: DataType) -> Cast:
        """Add a cast; TensorRT's `add_cast`."""
        return self.add_layer(Cast(to_type=to_type), [input])
