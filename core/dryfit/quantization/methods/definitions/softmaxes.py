"""Softmax over one axis: by tables of powers of e, and in fixed-point numbers.

d is how far an element is below the axis's largest, 0 to 255; `C` is the axis's extent, `i` the index of a table of 256
entries. FP32 sums are added in the order of the axis.
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from dryfit.network.layers.normalization import Softmax
from dryfit.network.tensor import Array
from dryfit.quantization.methods.call import OperatorCall
from dryfit.quantization.methods.definitions.real_numbers import exponential
from dryfit.quantization.methods.definitions.weighted import output_range
from dryfit.quantization.methods.method import MethodRule
from dryfit.quantization.methods.requantization import (
    FixedPoint,
    codes_of_real,
    doubling_high_product,
    fixed_point,
    shifted_right,
)
from dryfit.quantization.rounding import RoundingMode

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


# In fixed-point numbers: exponentials, their sum and its reciprocal without a real number. A number of Qm.n is an INT32
# with n bits behind the point. `a * b` of two of them is the doubling high product of
# `dryfit.quantization.methods.requantization`: the bits before the point add up.
#
# Source: the formulas of gemmlowp's `fixedpoint`: a Taylor polynomial of degree 4 at -1/8, factors for each power of
# two, and three Newton steps from the best linear first guess 48/17 - 32/17 x.
_AWAY = RoundingMode.HALF_AWAY_FROM_ZERO
_LARGEST_INT32 = 2**31 - 1
_INPUT_BITS = 26
_SUM_BITS = 19
_EXP_OF_EIGHTH = 1895147668
"""exp(-1/8) in Q0.31."""
_THIRD = 715827883
"""1/3 in Q0.31."""
_EXP_OF_POWERS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
"""exp(-2**k) in Q0.31, k = -2 to 4."""
_FIRST_GUESS = 1515870810
"""48/17 in Q2.29."""
_FIRST_SLOPE = -1010580540
"""-32/17 in Q2.29."""


def softmax_in_fixed_point(call: OperatorCall, rule: MethodRule) -> Array:
    """The power of the distance from the largest element in Q0.31 by the sum of all in Q12.19, rounded to 8 bits.

    Elements so far below the largest that their exponent leaves Q5.26 get the lowest code. TensorFlow Lite stops where
    a sum is 512 or more; ours gives the lowest code then, to which the quotient rounds.
    """
    del rule
    low, high = call.code_range
    powers, _, _ = powers_of_distances(float(call.operand(0).one_scale))
    is_counted = powers > 0
    indices = distances_from_largest(call)
    total = shifted_right(powers, 12, _AWAY)[indices].sum(axis=softmax_axis(call), keepdims=True)
    bits = np.frexp(total.astype(np.float64))[1].astype(np.int64)  # the sum is below 2**bits
    factors = reciprocal((total << (32 - bits)) - (1 << 31))
    quotients = shifted_right(doubling_high_product(factors, powers[indices]), bits - 1 - _SUM_BITS + 23, _AWAY)
    codes = np.where(is_counted[indices], np.clip(quotients + low, low, high), low)
    return codes.astype(call.to_type.numpy)


def powers_of_distances(scale: float) -> tuple[Array, Array, FixedPoint]:
    """exp(-scale * d) in Q0.31 for d from 0 to 255, -scale * d in Q5.26, and what made it of d.

    Both are 0 for a d that does not count, since it leaves Q5.26. Powers below 2**-32 are 0, too; what becomes of them
    is the lowest code either way.
    """
    multiplier = fixed_point(min(scale * 2.0**_INPUT_BITS, float(_LARGEST_INT32)))
    shift = int(multiplier.shift)
    radius = math.floor(31 * 2.0**_INPUT_BITS / 2.0**shift)
    distances = np.arange(256, dtype=np.int64)
    is_counted = distances <= radius
    counted = np.where(is_counted, -distances, 0)
    scaled = doubling_high_product(counted << max(shift, 0), multiplier.mantissa)
    return np.where(is_counted, _exponential(scaled), 0), scaled, multiplier


def _exponential(values: Array) -> Array:
    """Powers of e in Q0.31 of numbers in Q5.26, none positive: of a part from -1/4 to 0, times factors for the rest."""
    quarter = 1 << (_INPUT_BITS - 2)
    part = (values & (quarter - 1)) - quarter
    result = _exponential_of_quarter(part << 5)
    rest = part - values
    for exponent, factor in zip(range(-2, 5), _EXP_OF_POWERS, strict=True):
        has_power = (rest >> (_INPUT_BITS + exponent)) & 1 == 1
        result = np.where(has_power, doubling_high_product(result, factor), result)
    return np.where(values == 0, _LARGEST_INT32, result)


def _exponential_of_quarter(values: Array) -> Array:
    """Powers of e in Q0.31 of numbers in Q0.31 from -1/4 to below 0: terms up to x**4 / 24 of x = value + 1/8."""
    product = doubling_high_product
    x = values + (1 << 28)
    square = product(x, x)
    cube, fourth = product(square, x), product(square, square)
    terms = product(shifted_right(fourth, 2, _AWAY) + cube, _THIRD) + square
    return _EXP_OF_EIGHTH + product(_EXP_OF_EIGHTH, x + shifted_right(terms, 1, _AWAY))


def reciprocal(values: Array) -> Array:
    """1 / (1 + x) of numbers x in Q0.31 from 0 to 1, in Q0.31."""
    product = doubling_high_product
    half = (values + _LARGEST_INT32 + 1) // 2  # (1 + x) / 2; the sum is positive, so halves go up
    x = _FIRST_GUESS + product(half, _FIRST_SLOPE)
    for _ in range(3):
        x = x + np.clip(product(x, (1 << 29) - product(half, x)) << 2, -_LARGEST_INT32 - 1, _LARGEST_INT32)
    return np.asarray(np.minimum(x << 1, _LARGEST_INT32))
