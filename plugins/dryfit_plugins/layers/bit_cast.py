"""The bits of a tensor, read as another type."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layer import Inputs
from dryfit.network.layer_plugin import Array, Fields, LayerPlugin, PluginField
from dryfit.network.tensor import TensorSpec


class BitCast(LayerPlugin):
    """The same bits under another type of the same width. Field: `to_type`, its name. Source: ONNX `BitCast`."""

    plugin_name = "BitCast"
    declared_fields = {"to_type": PluginField(str)}

    def output_specs(self, fields: Fields, inputs: Inputs) -> Sequence[TensorSpec]:
        """The input's shape, of the other type."""
        x, to_type = inputs[0], _to_type(fields)
        if x is None or x.dtype.bits != to_type.bits:
            found = "nothing" if x is None else f"{x.dtype.name} of {x.dtype.bits} bits"
            raise ValueError(f"the type to read {found} as has the same width, not {to_type.bits} bits")
        return [TensorSpec(x.shape, to_type)]

    def enqueue(self, fields: Fields, inputs: Sequence[Array | None]) -> list[Array]:
        """The reinterpreted elements."""
        x, to_type = np.array(inputs[0], order="C"), _to_type(fields)
        if to_type.bits >= 8:
            return [x.view(to_type.numpy)]
        # NumPy keeps one narrow element a byte, and a signed one with its sign extended.
        codes = x.view(np.uint8) & np.uint8((1 << to_type.bits) - 1)
        if to_type.numpy_name.startswith("int"):
            sign = 1 << (to_type.bits - 1)
            return [((codes ^ np.uint8(sign)).astype(np.int8) - np.int8(sign)).astype(to_type.numpy)]
        return [codes.astype(to_type.numpy) if to_type.is_integer else codes.view(to_type.numpy)]


def _to_type(fields: Fields) -> DataType:
    return DataType.parse(str(fields["to_type"]))


PLUGIN = BitCast()
