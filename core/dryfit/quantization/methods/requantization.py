"""Requantization, from INT32 sums to codes of the output: what methods differ in, and what it means in numpy.

sx, sw, sy are the FP32 scales of input, weights and output; f32(.) and f64(.) one rounding to that type.

    FLOAT rule      m = f32(f32(sx * sw) / sy)
    FLOAT_PRODUCT   m = f64(f32(sx * sw)) / f64(sy)
    DOUBLE          m = f64(sx) * f64(sw) / f64(sy)

    TWO_STEP        v = round(high(sum, mantissa), shift)        half up, then the record's rounding
    ONE_STEP        v = round(sum * mantissa, shift)
    REAL            v = round(f(sum) * m)                        one operation of the encoding's type at a time

and the code is v plus the zero point, saturated to the output's range or to that of a fused activation.
"""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.errors import ConfigError
from dryfit.network.tensor import Array
from dryfit.quantization.rounding import RoundingMode, round_values


class ScaleRule(enum.Enum):
    """How the three scales become one multiplier."""

    DOUBLE = "double"
    """f64(sx) * f64(sw) / f64(sy)."""
    FLOAT_PRODUCT = "float_product"
    """f64(f32(sx * sw)) / f64(sy)."""
    FLOAT = "float"
    """f32(f32(sx * sw) / sy)."""


class Steps(enum.Enum):
    """How the multiplier is applied to a sum."""

    TWO_STEP = "two_step"
    """A saturating rounding doubling high product with a 31-bit multiplier (ties up), then a rounding shift right."""
    ONE_STEP = "one_step"
    """A 64-bit product and one rounding shift right."""
    REAL = "real"
    """A product of real numbers, rounded to a whole number."""


class Encoding(enum.Enum):
    """What holds the multiplier."""

    Q31 = "q31"
    """INT32 mantissa of 31 bits and a power of two."""
    Q15 = "q15"
    """A mantissa of 15 bits, the one of 31 rounded half up, and a power of two: with INT64 sums."""
    Q24 = "q24"
    """The 24-bit mantissa of an FP32 number, exactly, and a power of two."""
    FLOAT32 = "float32"
    FLOAT64 = "float64"


@frozen(kw_only=True)
class Requantization:
    """How sums become codes.

    Attributes:
        scale_rule: how scales meet.
        encoding: what holds the multiplier.
        steps: how it is applied.
        rounding: of the last step, where what lies half-way goes. The first of two steps is always half up.
        zero_point_first: whether the zero point is added before the rounding; else after it.
        clamp_first: whether values are clamped to the output's range before they are rounded; else after it.
        real_bias: whether a bias of floating-point values is taken, and added after scaling, in FP32 and units of the
            output's scale. A bias of INT32 is among the sums.
    """

    scale_rule: ScaleRule
    encoding: Encoding
    steps: Steps
    rounding: RoundingMode
    zero_point_first: bool = False
    clamp_first: bool = False
    real_bias: bool = False


Scale = Array | np.float32
_REAL_TYPES: dict[Encoding, Any] = {Encoding.FLOAT32: np.float32, Encoding.FLOAT64: np.float64}


@frozen(eq=False)
class Multipliers:
    """What sums are multiplied with, as the record's encoding holds it.

    Attributes:
        real: of the encoding's type, float32 or float64; of integer encodings float64, before it was encoded.
        fixed: mantissa and shift; None of real encodings.
    """

    real: Array
    fixed: FixedPoint | None


def effective_multiplier(rule: ScaleRule, sx: Scale, sw: Scale, sy: Scale) -> Array:
    """The three scales as one number, as float64; by the rule FLOAT its values are FP32's.

    Args:
        rule: how they meet.
        sx: of the input.
        sw: of the weights; 1 where there are none. The three broadcast.
        sy: of the output.
    """
    sx, sw, sy = (np.asarray(scale, np.float32) for scale in (sx, sw, sy))
    if rule is ScaleRule.DOUBLE:
        return np.asarray(sx.astype(np.float64) * sw.astype(np.float64) / sy.astype(np.float64))
    product = sx * sw
    if rule is ScaleRule.FLOAT_PRODUCT:
        return np.asarray(product.astype(np.float64) / sy.astype(np.float64))
    return np.asarray(product / sy).astype(np.float64)


def multipliers(record: Requantization, sx: Scale, sw: Scale, sy: Scale) -> Multipliers:
    """The multipliers of a record for scales that broadcast; of sw's shape where sx and sy are one number each."""
    return encoded(record, effective_multiplier(record.scale_rule, sx, sw, sy))


def encoded(record: Requantization, multiplier: Array | float) -> Multipliers:
    """Multipliers that are known already, rounded once to the record's encoding: FP64 in."""
    real = np.asarray(multiplier, np.float64)
    if record.encoding in _REAL_TYPES:
        return Multipliers(real.astype(_REAL_TYPES[record.encoding]), None)
    number = fixed_point(real.astype(np.float32) if record.encoding is Encoding.Q24 else real)
    return Multipliers(real, shortened(number) if record.encoding is Encoding.Q15 else number)


def requantize(
    record: Requantization,
    sums: Array,
    factors: Multipliers,
    zero_point: int,
    code_range: tuple[int, int],
    real_bias: Array | None = None,
) -> Array:
    """Codes of sums, as int32 within the range.

    Args:
        record: how.
        sums: INT32 (any integers that are such numbers); INT64 below 2**47 with the encoding Q15.
        factors: of `multipliers`; they broadcast to the sums.
        zero_point: of the output.
        code_range: lowest and highest code: of the type, or of a fused activation.
        real_bias: in units of the output's scale, FP32, of a record with real steps; broadcasts to the sums.
    """
    if factors.fixed is not None:
        step = one_step if record.steps is Steps.ONE_STEP else two_step
        values = step(sums, factors.fixed, record.rounding) + zero_point
        return np.asarray(np.clip(values, *code_range), np.int32)
    scaled = np.asarray(sums).astype(factors.real.dtype) * factors.real
    if real_bias is not None:
        scaled = scaled + np.asarray(real_bias, scaled.dtype)
    return codes_of_real(scaled, record, zero_point, code_range)


def codes_of_real(values: Array, record: Requantization, zero_point: int, code_range: tuple[int, int]) -> Array:
    """Codes, as int32 within the range, of real numbers in units of the output's scale. NaN gives the lowest code."""
    real = values.dtype.type
    low, high = code_range
    if record.zero_point_first:
        values, zero_point = values + real(zero_point), 0
    if record.clamp_first:
        values = np.fmin(np.fmax(values, real(low - zero_point)), real(high - zero_point))
    whole = round_values(values, record.rounding)
    whole = np.fmin(np.fmax(whole, real(low - zero_point)), real(high - zero_point))
    return np.asarray(whole.astype(np.int32) + np.int32(zero_point))


def activation_range(
    limits: tuple[float, float],
    scale: np.float32,
    zero_point: int,
    code_range: tuple[int, int],
    rounding: RoundingMode,
    *,
    zero_point_first: bool = False,
) -> tuple[int, int]:
    """The codes of a fused activation's limits within the type's range: `round(f32(limit / scale)) + zero_point`.

    Args:
        limits: in real numbers; infinite where there is none.
        scale: of the output.
        zero_point: of the output.
        code_range: of the output's type.
        rounding: of the quotient.
        zero_point_first: whether the zero point is added before the rounding.
    """
    units = np.asarray(limits, np.float32) / np.float32(scale)
    if zero_point_first:
        codes = round_values(units + np.float32(zero_point), rounding)
    else:
        codes = round_values(units, rounding) + np.float32(zero_point)
    low, high = (int(code) for code in np.clip(codes, *code_range))
    return low, high


# Fixed-point numbers --------------------------------------------------------------------------------------------------


_BITS = 31
_SHORT_BITS = 15
_LEAST_SHIFT = -31


@frozen(eq=False)
class FixedPoint:
    """Multipliers as mantissa and power of two.

    Attributes:
        mantissa: int64, 0 or from 2**30 to 2**31 - 1; of any shape.
        shift: int64 of the same shape: how many bits to the left, negative to the right.
        bits: how many the mantissa has; half of its range, as mantissas are 1/2 or more.

    Example:
        >>> number = fixed_point(0.75)
        >>> int(number.mantissa) == 3 * 2**29, int(number.shift)
        (True, 0)
    """

    mantissa: Array
    shift: Array
    bits: int = _BITS


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


def shortened(number: FixedPoint) -> FixedPoint:
    """The number with a mantissa of 15 bits, half up, at most 2**15 - 1."""
    dropped = number.bits - _SHORT_BITS
    mantissa = np.minimum((number.mantissa + (1 << (dropped - 1))) >> dropped, (1 << _SHORT_BITS) - 1)
    return FixedPoint(np.asarray(mantissa), number.shift, _SHORT_BITS)


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
    """The product in one rounding: all bits of it, then a shift right, rounded as said.

    Raises:
        ConfigError: a multiplier is 2**30 or more, which leaves no bit to round.
    """
    bits = multiplier.bits - multiplier.shift
    if np.any(bits < 1):
        raise ConfigError(
            "The multiplier is out of range for a single rounding shift",
            found=f"2**{int(np.max(multiplier.shift))}",
            allowed=f"below 2**{multiplier.bits - 1}",
            remedy="Quantize with other scales",
        )
    return shifted_right(np.asarray(values, np.int64) * multiplier.mantissa, bits, rounding)
