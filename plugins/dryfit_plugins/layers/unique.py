"""The different elements of a tensor, or its different slices along an axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layer import Inputs
from dryfit.network.layer_plugin import Array, Fields, LayerPlugin, PluginField
from dryfit.network.tensor import TensorSpec


class Unique(LayerPlugin):
    """(values, index of the first occurrence of each, index into the values of each element, count of each).

    Fields: `sorted` (1: ascending, 0: by first occurrence), `axis` (absent: the flattened input). How many values there
    are depends on the data. Source: ONNX `Unique`.
    """

    plugin_name = "Unique"
    declared_fields = {"sorted": PluginField(int, default=1), "axis": PluginField(int | None, default=None)}

    def output_specs(self, fields: Fields, inputs: Inputs) -> Sequence[TensorSpec]:
        """The input's shape with a dynamic extent along the axis, and three INT64 vectors."""
        x = inputs[0]
        if x is None:
            raise ValueError("the input is not connected")
        axis = _axis(fields, x.rank)
        inverse = -1 if not x.is_static else x.shape[axis] if axis is not None else int(np.prod(x.shape))
        shape = (-1,) if axis is None else tuple(-1 if i == axis else extent for i, extent in enumerate(x.shape))
        vector = TensorSpec((-1,), DataType.INT64)
        return [TensorSpec(shape, x.dtype), vector, TensorSpec((inverse,), DataType.INT64), vector]

    def enqueue(self, fields: Fields, inputs: Sequence[Array | None]) -> list[Array]:
        """The four outputs."""
        x = np.asarray(inputs[0])
        axis = _axis(fields, x.ndim)
        values, first, inverse, counts = np.unique(
            x, return_index=True, return_inverse=True, return_counts=True, axis=axis
        )
        inverse = inverse.reshape(-1)  # NumPy 2.0 gives it the input's rank
        if not fields["sorted"]:
            order = np.argsort(first)
            rank = np.empty_like(order)
            rank[order] = np.arange(order.size)
            values = np.take(values, order, axis=axis or 0)
            first, inverse, counts = first[order], rank[inverse], counts[order]
        return [values, first.astype(np.int64), inverse.astype(np.int64), counts.astype(np.int64)]


def _axis(fields: Fields, rank: int) -> int | None:
    axis: int | None = fields["axis"]
    if axis is None:
        return None
    if not -rank <= axis < rank:
        raise ValueError(f"there is no axis {axis} in a tensor of rank {rank}")
    return axis % rank


PLUGIN = Unique()
