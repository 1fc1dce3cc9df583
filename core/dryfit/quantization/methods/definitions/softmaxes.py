"""Softmax over one axis by a table of powers of e: d is how far an element is below the axis's largest, 0 to 255.

`C` is the axis's extent, `i` the index of a table of 256 entries. FP32 sums are added in the order of the axis.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from dryfit.network.layers.softmax import Softmax
from dryfit.quantization.methods.call import OperatorCall
from dryfit.quantization.methods.definitions.code_tables import exponential
from dryfit.quantization.methods.definitions.output_codes import output_range
from dryfit.quantization.methods.method import MethodRule
from dryfit.quantization.methods.requantization import codes_of_real

Array = np.ndarray[Any, Any]
_LARGEST = np.finfo(np.float32).max
_RESERVE = 5.0
_TABLE_BITS = 23
_FRACTION = 256


def softmax_by_table(call: OperatorCall, rule: MethodRule) -> Array:
    """With e = table[d] of `exp(-f32(sx * d))`:  `round(f32(e * f32(1 / f32(sum * sy)))) + zy`."""
    scale, zero_point = call.output_grid
    table = exponential(-(np.arange(256, dtype=np.float32) * call.operand(0).one_scale))
    powers = table[distances_from_largest(call)]
    factor = np.float32(1) / (_running_sum(call, powers) * scale)
    codes = codes_of_real(powers * factor, rule.record, zero_point, output_range(call, rule))
    return codes.astype(call.to_type.numpy)


def softmax_by_large_table(call: OperatorCall, rule: MethodRule) -> Array:
    """With e = table[255 - d] of `exp((i - 255 + B) sx)`:  `round(f32(f32(e * floor(1 / sy)) / sum)) + zy`.

    B = max(0, f32(ln(f32(largest FP32 / C))) - 5) / sx, so that small powers stay FP32 numbers. 1 / sy is rounded down:
    exact for 1/256 and 1/255, and coarse for scales near 1.
    """
    operand, (scale, zero_point) = call.operand(0), call.output_grid
    extent, step = operand.values.shape[softmax_axis(call)], np.float64(operand.one_scale)
    logarithm = np.float32(np.log(np.float64(_LARGEST / np.float32(extent))))
    shift = max(0.0, float(logarithm) - _RESERVE) / step
    powers = exponential((np.arange(256) - 255 + shift) * step)[255 - distances_from_largest(call)]
    units = powers * np.floor(np.float32(1) / scale) / _running_sum(call, powers)
    codes = codes_of_real(units, rule.record, zero_point, output_range(call, rule))
    return codes.astype(call.to_type.numpy)


def softmax_of_integers(call: OperatorCall, rule: MethodRule) -> Array:
    """`(256 e + sum div 2) div sum`, at most 255, above the lowest code, with whole powers e.

    They are `table[255 - d]` of `rte(q * exp((i - 255) sx))`, with q = min((2**32 - 1) / C, 2**23 - 1), so that the
    sum is a 32-bit number.
    """
    del rule
    operand = call.operand(0)
    extent, step = operand.values.shape[softmax_axis(call)], np.float64(operand.one_scale)
    largest = min((2**32 - 1) / extent, 2.0**_TABLE_BITS - 1)
    table = np.rint(largest * np.exp((np.arange(256) - 255) * step)).astype(np.int64)
    powers = table[255 - distances_from_largest(call)]
    total = powers.sum(axis=softmax_axis(call), keepdims=True)
    codes = (_FRACTION * powers + total // 2) // total
    low, high = call.code_range
    return np.asarray(np.minimum(codes + low, high).astype(call.to_type.numpy))


def distances_from_largest(call: OperatorCall) -> Array:
    """How far codes lie below the largest of their axis, 0 to 255, as indices."""
    codes = call.operand(0).values.astype(np.intp)
    return np.asarray(codes.max(axis=softmax_axis(call), keepdims=True) - codes)


def softmax_axis(call: OperatorCall) -> int:
    """The axis of a softmax."""
    return cast("Softmax", call.layer).axis


def _running_sum(call: OperatorCall, powers: Array) -> Array:
    """FP32 sums in the order of the axis, which stays with extent 1."""
    running = np.add.accumulate(powers, axis=softmax_axis(call), dtype=np.float32)
    return running.take([-1], axis=softmax_axis(call))
