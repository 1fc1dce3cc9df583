"""Dequantize."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.dequantize import Dequantize
from dryfit.reference.conversion import convert
from dryfit.reference.registry import Array, reference
from dryfit.reference.scale_expansion import spread


@reference(Dequantize)
def dequantize(layer: Dequantize, inputs: Sequence[Array | None]) -> list[Array]:
    """`(x - zero_point) * scale`: the difference exactly, the product in FP32, rounded once to `to_type`."""
    x, scale, zero_point = [*inputs, None][:3]
    if x is None or scale is None:
        raise layer.problem("Data and scale are connected")
    wide = np.float64 if layer.to_type is DataType.DOUBLE else np.float32
    exact = np.int64 if DataType.from_numpy(x.dtype).is_integer else np.float32
    difference = x.astype(exact)
    if zero_point is not None:
        difference = difference - spread(layer, zero_point.astype(exact), x.shape, layer.axis, layer.block_shape)
    factor = spread(layer, scale.astype(wide), x.shape, layer.axis, layer.block_shape)
    return [convert(difference.astype(wide) * factor, layer.to_type)]
