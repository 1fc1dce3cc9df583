"""Softmax in fixed-point numbers: exponentials, their sum and its reciprocal without a real number.

A number of Qm.n is an INT32 with n bits behind the point. `a * b` of two of them is the doubling high product of
`dryfit.quantization.methods.fixed_point`: the bits before the point add up.

Source: the formulas of gemmlowp's `fixedpoint`: a Taylor polynomial of degree 4 at -1/8, factors for each power of two,
and three Newton steps from the best linear first guess 48/17 - 32/17 x.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dryfit.quantization.methods.call import OperatorCall
from dryfit.quantization.methods.definitions.softmaxes import distances_from_largest, softmax_axis
from dryfit.quantization.methods.fixed_point import doubling_high_product, fixed_point, shifted_right
from dryfit.quantization.methods.method import MethodRule
from dryfit.quantization.rounding import RoundingMode

Array = np.ndarray[Any, Any]
_AWAY = RoundingMode.HALF_AWAY_FROM_ZERO
_LARGEST = 2**31 - 1
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
    powers, is_counted = _table(float(call.operand(0).one_scale))
    indices = distances_from_largest(call)
    total = shifted_right(powers, 12, _AWAY)[indices].sum(axis=softmax_axis(call), keepdims=True)
    bits = np.frexp(total.astype(np.float64))[1].astype(np.int64)  # the sum is below 2**bits
    factors = _reciprocal((total << (32 - bits)) - (1 << 31))
    quotients = shifted_right(doubling_high_product(factors, powers[indices]), bits - 1 - _SUM_BITS + 23, _AWAY)
    codes = np.where(is_counted[indices], np.clip(quotients + low, low, high), low)
    return codes.astype(call.to_type.numpy)


def _table(scale: float) -> tuple[Array, Array]:
    """exp(-scale * d) in Q0.31 for d from 0 to 255, with 0 where it does not count; and where it counts."""
    multiplier = fixed_point(min(scale * 2.0**_INPUT_BITS, float(_LARGEST)))
    shift = int(multiplier.shift)
    radius = math.floor(31 * 2.0**_INPUT_BITS / 2.0**shift)
    distances = np.arange(256, dtype=np.int64)
    is_counted = distances <= radius
    counted = np.where(is_counted, -distances, 0)
    powers = _exponential(doubling_high_product(counted << max(shift, 0), multiplier.mantissa))
    return np.where(is_counted, powers, 0), is_counted


def _exponential(values: Array) -> Array:
    """Powers of e in Q0.31 of numbers in Q5.26, none positive: of a part from -1/4 to 0, times factors for the rest."""
    quarter = 1 << (_INPUT_BITS - 2)
    part = (values & (quarter - 1)) - quarter
    result = _exponential_of_quarter(part << 5)
    rest = part - values
    for exponent, factor in zip(range(-2, 5), _EXP_OF_POWERS, strict=True):
        has_power = (rest >> (_INPUT_BITS + exponent)) & 1 == 1
        result = np.where(has_power, doubling_high_product(result, factor), result)
    return np.where(values == 0, _LARGEST, result)


def _exponential_of_quarter(values: Array) -> Array:
    """Powers of e in Q0.31 of numbers in Q0.31 from -1/4 to below 0: terms up to x**4 / 24 of x = value + 1/8."""
    product = doubling_high_product
    x = values + (1 << 28)
    square = product(x, x)
    cube, fourth = product(square, x), product(square, square)
    terms = product(shifted_right(fourth, 2, _AWAY) + cube, _THIRD) + square
    return _EXP_OF_EIGHTH + product(_EXP_OF_EIGHTH, x + shifted_right(terms, 1, _AWAY))


def _reciprocal(values: Array) -> Array:
    """1 / (1 + x) of numbers x in Q0.31 from 0 to 1, in Q0.31."""
    product = doubling_high_product
    half = (values + _LARGEST + 1) // 2  # (1 + x) / 2; the sum is positive, so halves go up
    x = _FIRST_GUESS + product(half, _FIRST_SLOPE)
    for _ in range(3):
        x = x + np.clip(product(x, (1 << 29) - product(half, x)) << 2, -_LARGEST - 1, _LARGEST)
    return np.asarray(np.minimum(x << 1, _LARGEST))
