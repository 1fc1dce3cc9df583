"""Quotients, roots and logarithms without a real number: division, reciprocal root, L2 normalization, log softmax.

`v` is the distance of a code from its zero point. A number of Qm.n is an INT32 with n bits behind the point; `a * b` of
two of them is the doubling high product of `dryfit.quantization.methods.requantization`.

Source: the formulas of gemmlowp's and TensorFlow Lite's fixed-point functions (Newton steps for reciprocal and root, a
quotient of polynomials for the logarithm); measured against TensorFlow Lite.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.normalization import VectorFunctionLayer
from dryfit.network.tensor import Array
from dryfit.quantization.methods.call import OperatorCall
from dryfit.quantization.methods.definitions.real_numbers import by_table
from dryfit.quantization.methods.definitions.softmaxes import powers_of_distances, reciprocal
from dryfit.quantization.methods.definitions.weighted import output_range
from dryfit.quantization.methods.method import MethodRule
from dryfit.quantization.methods.requantization import (
    FixedPoint,
    doubling_high_product,
    fixed_point,
    shifted_right,
    two_step,
    wrapped,
)
from dryfit.quantization.rounding import RoundingMode

_AWAY = RoundingMode.HALF_AWAY_FROM_ZERO
_LOW, _HIGH = -(2**31), 2**31 - 1


def _saturated(values: Array) -> Array:
    return np.clip(values, _LOW, _HIGH)


def _bit_length(values: Array) -> Array:
    """How many bits whole numbers that are not negative have."""
    return np.frexp(values.astype(np.float64))[1].astype(np.int64)


# Quotients ------------------------------------------------------------------------------------------------------------


def quotient(call: OperatorCall, rule: MethodRule) -> Array:
    """`v / w` by the reciprocal of |w|, then times f32(sa / f32(sb sy)); both signs move to v.

    v is shifted left as far as INT32 lets it, and the shift right of the second product takes that back. Small
    quotients need 32 bits or more of it, which C leaves open; the library's results on x86, which shifts by the low 5
    bits of the number, are far from the quotient, and these are they. A divisor of 0, which the library does not check,
    gives no result to rely on, here as there.
    """
    a, b, (scale, zero_point) = call.operand(0), call.operand(1), call.output_grid
    dividend, divisor = np.broadcast_arrays(a.distances.astype(np.int64), b.distances.astype(np.int64))
    dividend, divisor = np.where(divisor < 0, -dividend, dividend), np.abs(divisor)
    bits = _bit_length(divisor)
    inverse = reciprocal(wrapped((divisor << (32 - bits)) - 2**31))
    headroom = 31 - _bit_length(np.where(dividend < 0, -dividend - 1, dividend))
    product = doubling_high_product(dividend << headroom, inverse)
    factor = fixed_point(float(a.one_scale / (b.one_scale * scale)))
    values = _shifted_as_on_x86(doubling_high_product(product, factor.mantissa), bits - 1 + headroom - factor.shift)
    return np.asarray(np.clip(values + zero_point, *output_range(call, rule)).astype(call.to_type.numpy))


def _shifted_as_on_x86(values: Array, bits: Array) -> Array:
    """INT32 values shifted right, halves away from zero; by 32 bits and more what gemmlowp's code gives on x86."""
    far = (values >> (bits & 31)) + (values >= 0)
    return np.asarray(np.where(bits < 32, shifted_right(values, np.clip(bits, 0, 31), _AWAY), far))


# Reciprocal roots -----------------------------------------------------------------------------------------------------

_THREE_HALVES = 3 << 27
"""1.5 in Q3.28."""
_HALF_ROOT_OF_2 = 1518500250
"""sqrt(2) / 2 in Q0.31."""
_ROUNDS = 5
_WIDEST = 29


def _reciprocal_root(values: Array) -> FixedPoint:
    """1 / sqrt(n) of INT32 values, 0 taken for 1: five Newton steps from 1 on n / 4**k from 1/2 to 2, in Q3.28."""
    number = np.maximum(values.astype(np.int64), 1)
    quarters = np.maximum((_bit_length(number) - _WIDEST + 1) // 2, 0)
    shift = 11 + quarters
    number = number >> (2 * quarters)
    pairs = (31 - _bit_length(number)) // 2 - 1
    half = shifted_right((number << (2 * pairs)) >> 1, 1, _AWAY)
    product = doubling_high_product
    x = np.full_like(number, 1 << 28)
    for _ in range(_ROUNDS):
        cube = _saturated(product(product(x, x), x) << 6)
        x = _saturated((product(x, _THREE_HALVES) - product(half, cube)) << 3)
    mantissa, right = product(x, _HALF_ROOT_OF_2), shift - pairs
    is_least = values <= 1
    mantissa = np.where(right < 0, mantissa << np.maximum(-right, 0), mantissa)
    return FixedPoint(np.where(is_least, _HIGH, mantissa), np.where(is_least, 0, np.minimum(-right, 0)))


_KEPT_BITS = 20


def reciprocal_root(call: OperatorCall, rule: MethodRule) -> Array:
    """`1 / sqrt(v)` with 20 bits behind the point, times 1 / f32(sqrt(sx) sy); the highest code where v is 0."""
    operand, (scale, zero_point) = call.operand(0), call.output_grid
    factor = fixed_point(1 / float(np.sqrt(operand.one_scale) * scale))
    to_output = FixedPoint(factor.mantissa, factor.shift - _KEPT_BITS)
    codes, rounding = output_range(call, rule), rule.record.rounding

    def function(v: Array) -> Array:
        root = _reciprocal_root(np.maximum(v, 0))
        kept = two_step(np.ones_like(v), FixedPoint(root.mantissa, root.shift + _KEPT_BITS), rounding)
        found = np.clip(two_step(kept, to_output, rounding) + zero_point, *codes)
        return np.where(v <= 0, codes[1], found)

    return by_table(operand, function).astype(call.to_type.numpy)


def unit_vectors(call: OperatorCall, rule: MethodRule) -> Array:
    """`v / sqrt(sum of v^2)` in 128ths: of UINT8 `128 v` is multiplied, of INT8 v with a shift of 7 bits more."""
    operand, axis = call.operand(0), cast("VectorFunctionLayer", call.layer).axis
    distances = operand.distances.astype(np.int64)
    root = _reciprocal_root(np.square(distances).sum(axis=axis, keepdims=True))
    rounding = rule.record.rounding
    if operand.dtype is DataType.UINT8:
        values = 128 + two_step(128 * distances, root, rounding)
    else:
        values = two_step(distances, FixedPoint(root.mantissa, root.shift + 7), rounding)
    return np.asarray(np.clip(values, *call.code_range).astype(call.to_type.numpy))


# Logarithms -----------------------------------------------------------------------------------------------------------

_LOG_2 = 1488522236
"""log(2) in Q0.31."""
_FOURTH_ROOT_OF_HALF = 1805811301
"""sqrt(sqrt(1/2)) in Q0.31."""
_NUMERATOR = 117049297
"""11/240 sqrt(sqrt(2)) in Q0.31."""
_DENOMINATOR = (1057819769, 127690142, 638450708)
"""2 / r - r, r / 20 and r / 4 in Q0.31, r = sqrt(sqrt(2))."""
_SUM_BITS, _OUTPUT_BITS = 12, 5
"""Bits before the point of sums of powers, and of their logarithms."""


def _logarithm(values: Array) -> Array:
    """log(x) in Q5.26 of numbers of 1 or more in Q12.19.

    x is r * 2**k with r as near to sqrt(sqrt(1/2)) as two ways to halve it find; log(r) is a quotient of polynomials.
    """
    product, quarter, bits = doubling_high_product, 1 << 23, 31 - _OUTPUT_BITS - 1
    length = _bit_length(values)
    first = _saturated(product(values << (31 - length), _HALF_ROOT_OF_2) << 1)
    first_power = _saturated(_saturated((_SUM_BITS - (32 - length)) << bits) + quarter)
    halved = product(values, _HALF_ROOT_OF_2)
    headroom = 31 - _bit_length(halved)
    second = _saturated(values << headroom)
    second_power = _saturated(_saturated((_SUM_BITS - headroom) << bits) - quarter)
    r, power = np.minimum(first, second), np.maximum(first_power, second_power)
    middle = (r + _FOURTH_ROOT_OF_HALF + 1) // 2
    q = 2 * (r - _FOURTH_ROOT_OF_HALF)
    square = product(q, q)
    numerator = product(q, r) + product(product(q, square), _NUMERATOR)
    constant, of_square, of_first = _DENOMINATOR
    denominator = product(middle, constant + q + product(square, of_square)) + product(q, of_first)
    of_r = product(shifted_right(numerator, _OUTPUT_BITS + 1, _AWAY), reciprocal(denominator))
    return _saturated((product(power, _LOG_2) + of_r) << 1)


def log_softmax(call: OperatorCall, rule: MethodRule) -> Array:
    """`x - log(sum of exp(x))` of distances from the largest, in 16ths below the highest code.

    Distances are in Q5.26; those that leave it do not count, and get the lowest code.
    """
    operand, axis = call.operand(0), cast("VectorFunctionLayer", call.layer).axis
    codes = operand.values.astype(np.int64)
    distances = codes.max(axis=axis, keepdims=True) - codes
    powers, scaled, multiplier = powers_of_distances(float(operand.one_scale))
    is_counted = powers > 0
    total = np.where(is_counted, shifted_right(powers, 12, _AWAY), 0)[distances].sum(axis=axis, keepdims=True)
    logarithm = _logarithm(total)
    backwards = fixed_point((1 << (31 - int(multiplier.shift))) / float(multiplier.mantissa))
    lowest = two_step(logarithm + _LOW, backwards, rule.record.rounding)
    least = np.maximum(-int(np.count_nonzero(is_counted)), lowest)
    low, high = call.code_range
    values = shifted_right(scaled[distances] - logarithm, 22, _AWAY) + high
    return np.where(-distances > least, np.clip(values, low, high), low).astype(call.to_type.numpy)
