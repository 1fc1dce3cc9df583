"""Fixed-point numbers and their products, exactly: what integer requantization is made of.

A positive multiplier m is `mantissa * 2**(shift - 31)`, its mantissa an INT32 of 31 bits. Everything is computed in
INT64, where no product of an INT32 sum with a mantissa overflows; where a library's INT32 would, ours holds the value.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from dryfit.errors import ConfigError
from dryfit.quantization.rounding import RoundingMode, round_values

Array = np.ndarray[Any, Any]
_BITS = 31
_LEAST_SHIFT = -31


@attrs.frozen(eq=False)
class FixedPoint:
    """Multipliers as mantissa and power of two.

    Attributes:
        mantissa: int64, 0 or from 2**30 to 2**31 - 1; of any shape.
        shift: int64 of the same shape: how many bits to the left, negative to the right.

    Example:
        >>> number = fixed_point(0.75)
        >>> int(number.mantissa) == 3 * 2**29, int(number.shift)
        (True, 0)
    """

    mantissa: Array
    shift: Array


def fixed_point(multiplier: Array | float) -> FixedPoint:
    """Numbers of FP64, none negative, with the nearest mantissa of 31 bits, ties away from zero; below 2**-32 it is 0.

    Every FP32 number of that range is held exactly.
    """
    fraction, exponent = np.frexp(np.asarray(multiplier, np.float64))
    mantissa = round_values(fraction * 2.0**_BITS, RoundingMode.HALF_AWAY_FROM_ZERO).astype(np.int64)
    shift = exponent.astype(np.int64)
    is_next = mantissa == 1 << _BITS
    mantissa, shift = np.where(is_next, mantissa >> 1, mantissa), np.where(is_next, shift + 1, shift)
    is_zero = (mantissa == 0) | (shift < _LEAST_SHIFT)
    return FixedPoint(np.where(is_zero, 0, mantissa), np.where(is_zero, 0, shift))


def wrapped(values: Array) -> Array:
    """INT64 values as the INT32 of their low bits, in INT64."""
    return np.asarray(values, np.int64).astype(np.int32).astype(np.int64)


def doubling_high_product(a: Array | int, b: Array | int) -> Array:
    """`a * b / 2**31` of INT32 values, rounded half up; 2**31 - 1 where both are -2**31."""
    product = (np.asarray(a, np.int64) * np.asarray(b, np.int64) + (1 << (_BITS - 1))) >> _BITS
    return np.asarray(np.minimum(product, (1 << _BITS) - 1))


def shifted_right(values: Array | int, bits: Array | int, rounding: RoundingMode) -> Array:
    """`values / 2**bits`, rounded; the values where `bits` is 0.

    Args:
        values: integers below 2**62 in magnitude.
        bits: from 0 to 62; of a shape that broadcasts.
        rounding: where what lies half-way goes.
    """
    values, bits = np.asarray(values, np.int64), np.asarray(bits, np.int64)
    whole = values >> bits
    rest = values - (whole << bits)
    half = (np.int64(1) << bits) >> 1
    takes_half = {
        RoundingMode.HALF_UP: True,
        RoundingMode.HALF_AWAY_FROM_ZERO: values > 0,
        RoundingMode.HALF_TO_EVEN: (whole & 1) == 1,
    }[rounding]
    return np.asarray(whole + ((bits > 0) & ((rest > half) | ((rest == half) & takes_half))))


def two_step(values: Array | int, multiplier: FixedPoint, rounding: RoundingMode) -> Array:
    """The product in two roundings: a doubling high product (half up), then a shift right, rounded as said.

    A shift to the left goes before the product, and wraps around as INT32 does.
    """
    left, right = np.maximum(multiplier.shift, 0), np.maximum(-multiplier.shift, 0)
    high = doubling_high_product(wrapped(np.asarray(values, np.int64) << left), multiplier.mantissa)
    return shifted_right(high, right, rounding)


def one_step(values: Array | int, multiplier: FixedPoint, rounding: RoundingMode) -> Array:
    """The product in one rounding: all 63 bits of it, then a shift right, rounded as said.

    Raises:
        ConfigError: a multiplier is 2**30 or more, which leaves no bit to round.
    """
    bits = _BITS - multiplier.shift
    if np.any(bits < 1):
        raise ConfigError(
            "One rounding shift has no room for the multiplier",
            found=f"2**{int(np.max(multiplier.shift))}",
            allowed=f"below 2**{_BITS - 1}",
        )
    return shifted_right(np.asarray(values, np.int64) * multiplier.mantissa, bits, rounding)
