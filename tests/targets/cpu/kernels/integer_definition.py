"""The arithmetic of integer groups in numpy: the truth that the native functions equal bit for bit.

`kernels/requantization.py` and `kernels/softmax.py` state it.
"""

from __future__ import annotations

import numpy as np

from dryfit.quantization.rounding import round_values
from dryfit.target.kernels import Array
from dryfit_cpu import codes
from dryfit_cpu.kernels.requantization import GroupRequantization

_COMBINE = {codes.SUM: np.add, codes.PROD: np.multiply, codes.MAX: np.maximum, codes.MIN: np.minimum}


def requantized(
    sums: Array, multiplier: Array, steps: GroupRequantization, residual: Array | None = None, bias: Array | None = None
) -> Array:
    """INT8 or FP32 results of exact sums.

    Args:
        sums: INT32.
        multiplier: FP32, broadcasts to the sums.
        steps: what follows.
        residual: INT8 or real, of the sums' shape.
        bias: FP32, broadcasts to the sums; in the multiplier's unit.
    """
    x = sums.astype(np.float32) * multiplier
    if bias is not None:
        x = x + bias
    if steps.rounds_sum:
        x = round_values(_limited(x, steps.sum_limits), steps.rounding) * np.float32(steps.sum_multiplier)
    if residual is not None:
        distance = residual.astype(np.float32) - np.float32(steps.residual_zero)
        x = _COMBINE[steps.operation](x, distance * np.float32(steps.residual_multiplier))
    x = _limited(x, steps.limits)
    if steps.rounds_last:
        x = _limited(round_values(x, steps.rounding) * np.float32(steps.last_multiplier), steps.last_limits)
    return (round_values(x, steps.rounding) + steps.zero_point).astype(np.int8) if steps.is_quantized else x


def _limited(x: Array, limits: tuple[float, float]) -> Array:
    return np.minimum(np.maximum(x, np.float32(limits[0])), np.float32(limits[1]))


def normalized(values: Array, axis: int, table: Array, steps: GroupRequantization) -> Array:
    """INT8 results of a softmax of quantized values.

    Args:
        values: INT8.
        axis: over which results sum to 1.
        table: what `exponentials` gave.
        steps: what happens to the quotients.
    """
    wide = values.astype(np.int64)
    powers = table[wide.max(axis=axis, keepdims=True) - wide]
    quotients = powers.astype(np.float32) / powers.sum(axis=axis, keepdims=True).astype(np.float32)
    low, high = (np.float32(limit) for limit in steps.limits)
    x = np.minimum(np.maximum(quotients * np.float32(1.0 / steps.unit), low), high)
    return (round_values(x, steps.rounding) + steps.zero_point).astype(np.int8)
