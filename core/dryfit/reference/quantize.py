"""Quantize."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.layers.quantize import Quantize
from dryfit.reference.conversion import convert, limits
from dryfit.reference.registry import Array, reference
from dryfit.reference.scale_expansion import spread


@reference(Quantize)
def quantize(layer: Quantize, inputs: Sequence[Array | None]) -> list[Array]:
    """`saturate(round(x / scale) + zero_point)`: a division in FP32, ties to even; NaN becomes the lowest integer."""
    x, scale, zero_point = [*inputs, None][:3]
    if x is None or scale is None:
        raise layer.problem("Data and scale are connected")
    wide = np.float64 if x.dtype == np.float64 else np.float32
    factor = spread(layer, scale.astype(wide), x.shape, layer.axis, layer.block_shape)
    codes = x.astype(wide) / factor
    if not layer.to_type.is_floating_point:
        codes = np.rint(codes)
    if zero_point is not None:
        offset = spread(layer, zero_point.astype(wide), x.shape, layer.axis, layer.block_shape)
        codes = np.where(offset == 0, codes, codes + offset)  # a sum with 0 would lose the sign of -0
    if layer.to_type.is_floating_point:
        return [convert(codes, layer.to_type, saturate=layer.saturate)]
    low, high = limits(layer.to_type)
    # fmax takes the number where the other operand is NaN.
    return [np.fmin(np.fmax(codes, wide(low)), wide(high)).astype(np.int32).astype(layer.to_type.numpy)]
