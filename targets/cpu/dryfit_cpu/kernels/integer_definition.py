"""The arithmetic of integer groups in numpy: the truth that the native functions equal bit for bit.

    sums         exact, INT32: products of INT8 values, plus a bias that is whole units of the products
    x = FP32(sums) * multiplier            one multiplier a channel: input scale * weight scale / unit, rounded once
    if real bias:    x = x + bias          one a channel: bias / unit, rounded once
    if rounds_sum:   x = round(limit(x, sum_limits)) * sum_multiplier
    if residual:     r = (FP32(residual) - residual_zero) * residual_multiplier
                     x = x + r, or x * r, max(x, r), min(x, r)
    x = limit(x, limits)                   an activation and INT8's own limits
    if rounds_last:  x = limit(round(x) * last_multiplier, last_limits)
    if is_quantized: the result is round(x) + zero_point, else x

Of quantized values with a zero point, sums are those of their distances from it: exact, too. The limits of a rounding
whose results have one are those of INT8 less the zero point.

Every step is one FP32 operation of IEEE 754, rounded to nearest even, none joined with the next. `round` gives whole
numbers by the device's rounding mode. Units, multipliers and limits: `requantization.py`.

Source: S. Migacz, "8-bit Inference with TensorRT" (GTC 2017), workflow of an INT8 convolution: INT32 sums, FP32,
scale, bias in the output's scale, ReLU, round, saturate. ONNX Runtime's quantizer gives biases as INT32: these are in
the sums. Our choice: the scales meet in one multiplier a channel, as in the integer kernels of all devices that we
know; roundings between layers of the network are kept.
"""

from __future__ import annotations

import numpy as np

from dryfit.quantization.rounding import round_values
from dryfit.target.kernels import Array
from dryfit_cpu import codes
from dryfit_cpu.kernels.requantization import Requantization

_COMBINE = {codes.SUM: np.add, codes.PROD: np.multiply, codes.MAX: np.maximum, codes.MIN: np.minimum}


def requantized(
    sums: Array, multiplier: Array, steps: Requantization, residual: Array | None = None, bias: Array | None = None
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
