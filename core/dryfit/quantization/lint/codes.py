"""Constant weights in units of their scales: what the codes are before they are rounded and limited."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.quantization.lint.network_view import QuantizedWeights, scale_of
from dryfit.reference.scale_expansion import spread

Array = np.ndarray[Any, Any]

BOUNDS = {DataType.INT8: (-128.0, 127.0), DataType.INT4: (-8.0, 7.0)}
"""Least and largest code of integer types. In floating-point types a scale loses no codes, only exponents."""


@attrs.frozen(eq=False)
class RealCodes:
    """Weights divided by their scales.

    Attributes:
        values: float64, in the shape of the weights; not rounded.
        scales: which scale each weight has: the index of it among all, in the shape of the weights.
        bounds: least and largest code of the type.
    """

    values: Array
    scales: Array
    bounds: tuple[float, float]

    def largest_by_scale(self) -> Array:
        """For each scale the largest magnitude of the weights that share it."""
        largest = np.zeros(int(self.scales.max()) + 1)
        np.maximum.at(largest, self.scales.reshape(-1), np.abs(self.values).reshape(-1))
        return largest


def real_codes(weights: QuantizedWeights) -> RealCodes | None:
    """The weights in units of their scales; None for types without integer codes, and for what is not known."""
    quantized = weights.dequantize.inputs[0]
    values = weights.values
    owner = weights.quantize or weights.dequantize
    scale = scale_of(owner)
    if quantized is None or quantized.dtype not in BOUNDS or values is None or scale is None or not values.size:
        return None

    def over_weights(of_scales: Array) -> Array:
        return np.broadcast_to(spread(owner, of_scales, values.shape, owner.axis, owner.block_shape), values.shape)

    codes = values.astype(np.float64)
    if weights.quantize is not None:
        codes = codes / over_weights(scale.astype(np.float64))
    indices = over_weights(np.arange(scale.size).reshape(scale.shape))
    return RealCodes(np.where(np.isfinite(codes), codes, 0.0), indices, BOUNDS[quantized.dtype])
