"""What FP32 is too narrow for: logarithms and powers in FP64, and requantization in whole numbers.

A power's exponent is multiplied with a logarithm: what FP32 loses there would be an error of many units in the result.
In FP64 short polynomials are enough, for every FP32 number, subnormal ones included. Errors are the largest found
against numpy's FP64 over dense grids of the whole range.

An exponential ends by multiplying with a power of two, which may leave the range of FP32: that is here too.

In whole numbers INT32 sums are multiplied by a fixed-point multiplier, and rounded as quantize methods do. It is `M *
2**(S - 31)`: an INT32 mantissa M of 31 bits and a shift S, positive to the left. Sums, mantissas and shifts come as the
bits of vectors; results are whole FP32 numbers. Those beyond 2**24 are not exact, and far beyond any code.

Source: the definitions in `dryfit.quantization.methods.requantization`, which these equal bit for bit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.emit import INT, SHORT, WORD, Builder, Value, operation
from dryfit_cpu.compiler.tier import is_x86
from dryfit_cpu.compiler.vectors import FLOATS, INTS, LANES, VECTOR, WORDS

HAS_TABLES = is_x86() and LANES == 16
"""Whether a register can be a table for another, and an instruction multiplies with powers of two: AVX512."""
_LOWEST = -87.3
_HIGHEST = 88.72283172607422
"""The largest FP32 number with a finite exponential."""


@operation(VECTOR, VECTOR, VECTOR, VECTOR)
def scaled_exponential(builder: Builder, p: Value, n: Value, x: Value) -> Value:
    """`p * 2**n`, which is e to the power of x: 0 where x is below -87.3, infinity above 88.7, NaN for NaN.

    p is between 1/2 and 2, n a whole number up to 129; where x is below -87.3, they may be anything. With tables the
    largest whole number that is not above n counts.
    """
    below = builder.fcmp_ordered("<", x, emit.constant(FLOATS, _LOWEST))
    zero = emit.constant(FLOATS, 0.0)
    if HAS_TABLES:
        arguments = [p, n, zero, ir.Constant(SHORT, -1), ir.Constant(INT, 4)]
        scaled = emit.call(builder, f"llvm.x86.avx512.mask.scalef.ps.{32 * LANES}", FLOATS, arguments)
        return builder.select(below, zero, scaled)
    # A number that 1.5 * 2**23 was added to counts wholes by its last bit; there they are added to p's exponent.
    whole = builder.bitcast(builder.fadd(n, emit.constant(FLOATS, 12582912.0)), INTS)
    moved = builder.add(builder.bitcast(p, INTS), builder.shl(whole, emit.constant(INTS, 23)))
    beyond = builder.fcmp_unordered(">", x, emit.constant(FLOATS, _HIGHEST))
    infinite = builder.fadd(x, emit.constant(FLOATS, math.inf))
    return builder.select(below, zero, builder.select(beyond, infinite, builder.bitcast(moved, FLOATS)))


@operation(VECTOR, VECTOR)
def power_of_sixteenths(builder: Builder, value: Value) -> Value:
    """2 to the fraction of n, from 0 to 15/16, of `1.5 * 2**19 + n`: the last bits of such a number count sixteenths.

    For machines with tables.
    """
    table = ir.Constant(FLOATS, [float(np.float32(2 ** (j / 16))) for j in range(16)])
    return emit.call(builder, "llvm.x86.avx512.permvar.sf.512", FLOATS, [table, builder.bitcast(value, INTS)])


_DOUBLE = ir.DoubleType()
_DOUBLES = emit.vector_of(_DOUBLE, LANES)
_ROUND = 1.5 * 2.0**52
"""Added to a smaller number, it leaves the whole number nearest to it in the low bits."""
_ROOT_OF_HALF_BITS = 0x3FE6A09E667F3BCD
_LN_2_HIGH, _LN_2_LOW = 0.69314718036912382, 1.9082149292705877e-10
# In FP64 the plain series are enough, with no fitted polynomials: FP32 keeps 24 of its 53 bits, and one rounding at the
# end is what leaves 0.51 units.
_LOG_DEGREE, _EXP_DEGREE = 8, 11


def _number(value: float) -> Value:
    return emit.constant(_DOUBLES, value)


def _bits(value: int) -> Value:
    return ir.Constant(WORDS, [ir.Constant(WORD, value)] * LANES)


def _wide(builder: Builder, value: Value) -> Value:
    return builder.fpext(value, _DOUBLES)


def _polynomial(builder: Builder, x: Value, coefficients: list[float]) -> Value:
    """Horner's scheme, the constant term first."""
    result = _number(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = emit.call(builder, f"llvm.fmuladd.v{LANES}f64", _DOUBLES, [result, x, _number(coefficient)])
    return result


def _logarithm(builder: Builder, x: Value) -> Value:
    """log(x) of FP64 that is not negative: -infinity for 0, infinity and NaN for themselves.

    x is 2**n * m with m around 1; log(m) is 2 atanh(s) with s = (m - 1) / (m + 1), and |s| < 0.172.
    """
    bits = builder.bitcast(x, WORDS)
    # Above the exponent of 2**52, a small whole number is the last bits.
    above = builder.lshr(builder.add(builder.sub(bits, _bits(_ROOT_OF_HALF_BITS)), _bits(1 << 62)), _bits(52))
    n = builder.fsub(builder.bitcast(builder.or_(above, _bits(0x433 << 52)), _DOUBLES), _number(2.0**52 + 1024))
    m_bits = builder.sub(bits, builder.shl(builder.sub(above, _bits(1024)), _bits(52)))
    m = builder.bitcast(m_bits, _DOUBLES)
    s = builder.fdiv(builder.fsub(m, _number(1.0)), builder.fadd(m, _number(1.0)))
    z = builder.fmul(s, s)
    series = _polynomial(builder, z, [2 / (2 * k + 1) for k in range(_LOG_DEGREE + 1)])
    log = builder.fadd(builder.fmul(n, _number(math.log(2))), builder.fmul(s, series))
    log = builder.select(builder.fcmp_ordered("==", x, _number(0.0)), _number(-math.inf), log)
    is_finite = builder.fcmp_ordered("<", x, _number(math.inf))
    return builder.select(is_finite, log, x)


def _exponential(builder: Builder, t: Value) -> Value:
    """e**t, correct for what becomes an FP32 number; NaN for NaN."""
    # Far enough outside of FP32 that it becomes 0 or infinity when it is rounded; inside the limits no exponent
    # overflows.
    t = builder.select(builder.fcmp_ordered(">", t, _number(100.0)), _number(100.0), t)
    t = builder.select(builder.fcmp_ordered("<", t, _number(-110.0)), _number(-110.0), t)
    shifted = builder.fadd(builder.fmul(t, _number(1 / math.log(2))), _number(_ROUND))
    n = builder.fsub(shifted, _number(_ROUND))
    r = builder.fsub(builder.fsub(t, builder.fmul(n, _number(_LN_2_HIGH))), builder.fmul(n, _number(_LN_2_LOW)))
    series = _polynomial(builder, r, [1 / math.factorial(k) for k in range(_EXP_DEGREE + 1)])
    exponent = builder.shl(builder.add(builder.bitcast(shifted, WORDS), _bits(1023)), _bits(52))
    return builder.fmul(series, builder.bitcast(exponent, _DOUBLES))


@operation(VECTOR, VECTOR)
def logarithm(builder: Builder, value: Value) -> Value:
    """The natural logarithm of each lane, within 0.51 units in the last place; NaN below zero."""
    x = _wide(builder, value)
    log = _logarithm(builder, x)
    log = builder.select(builder.fcmp_ordered("<", x, _number(0.0)), _number(math.nan), log)
    return builder.fptrunc(log, FLOATS)


@operation(VECTOR, VECTOR, VECTOR)
def power(builder: Builder, base: Value, exponent: Value) -> Value:
    """Each lane of the base to the power of the exponent's, within 0.51 units in the last place.

    Special values as C99's `pow`, which numpy's `power` is: 1 for an exponent of 0 and for a base of 1, whatever the
    other is; the sign of a negative base for odd exponents; NaN for one with a fraction.
    """
    x, y, one, zero = _wide(builder, base), _wide(builder, exponent), _number(1.0), _number(0.0)
    size = emit.call(builder, f"llvm.fabs.v{LANES}f64", _DOUBLES, [x])
    t = builder.fmul(y, _logarithm(builder, size))
    # 0 times infinity: a base of 1 or -1 with an infinite exponent.
    is_unit = builder.and_(builder.fcmp_ordered("==", size, one), builder.fcmp_ordered("ord", y, y))
    result = _exponential(builder, builder.select(is_unit, zero, t))

    has_fraction, is_odd = _kind_of(builder, y)
    is_negative = builder.icmp_signed("<", builder.bitcast(x, WORDS), _bits(0))
    result = builder.select(builder.and_(is_negative, is_odd), builder.fneg(result), result)
    is_ordinary = builder.and_(builder.fcmp_ordered("<", x, zero), builder.fcmp_ordered("<", size, _number(math.inf)))
    result = builder.select(builder.and_(is_ordinary, has_fraction), _number(math.nan), result)
    is_one = builder.or_(builder.fcmp_ordered("==", y, zero), builder.fcmp_ordered("==", x, one))
    return builder.fptrunc(builder.select(is_one, one, result), FLOATS)


def _kind_of(builder: Builder, y: Value) -> tuple[Value, Value]:
    """Whether FP32 numbers, widened, have a fraction, and whether they are odd whole numbers."""
    size = emit.call(builder, f"llvm.fabs.v{LANES}f64", _DOUBLES, [y])
    shifted = builder.fadd(size, _number(2.0**52))
    is_small = builder.fcmp_ordered("<", size, _number(2.0**24))
    is_whole = builder.fcmp_ordered("==", builder.fsub(shifted, _number(2.0**52)), size)
    last = builder.and_(builder.bitcast(shifted, WORDS), _bits(1))
    is_odd = builder.and_(builder.icmp_unsigned("==", last, _bits(1)), is_whole)
    return builder.and_(is_small, builder.not_(is_whole)), builder.and_(is_small, is_odd)


DOUBLES = emit.vector_of(ir.DoubleType(), LANES)
_LARGEST = 1 << 20
"""No code is as far from another."""


def _integers(builder: Builder, bits: Value) -> Value:
    return builder.bitcast(bits, INTS)


def _product(builder: Builder, a: Value, b: Value) -> Value:
    """Of INT32 numbers, in 64 bits."""
    return builder.mul(builder.sext(a, WORDS), builder.sext(b, WORDS))


@operation(VECTOR, VECTOR)
def as_integer_bits(builder: Builder, value: Value) -> Value:
    """The bits of INT32 numbers that are given as whole FP32 numbers."""
    return builder.bitcast(builder.fptosi(value, INTS), FLOATS)


@operation(VECTOR, VECTOR, VECTOR, VECTOR, types.int64)
def two_steps(builder: Builder, sums: Value, mantissas: Value, shifts: Value, rounds_up: Value) -> Value:
    """The doubled high half of the product, ties up; then a shift to the right, ties up or away from zero.

    A shift to the left wraps around, as that of the libraries does.
    """
    zero, one = emit.constant(INTS, 0), emit.constant(INTS, 1)
    distances = _integers(builder, shifts)
    is_left = builder.icmp_signed(">", distances, zero)
    left, right = builder.select(is_left, distances, zero), builder.select(is_left, zero, builder.sub(zero, distances))
    # In 64 bits, where the libraries that are followed have an instruction for the doubled high half: what they
    # saturate, a product of the two lowest numbers, no mantissa of a multiplier gives.
    product = _product(builder, builder.shl(_integers(builder, sums), left), _integers(builder, mantissas))
    rounded = builder.add(product, emit.constant(WORDS, 1 << 30))
    high = builder.trunc(builder.lshr(rounded, emit.constant(WORDS, 31)), INTS)
    mask = builder.sub(builder.shl(one, right), one)
    # What is above half of the divisor goes up. Where ties go away from zero, one below zero does not.
    is_away = emit.splat(builder, builder.icmp_signed("==", rounds_up, emit.word(0)), LANES)
    is_less = builder.and_(builder.icmp_signed("<", high, zero), is_away)
    half = builder.add(builder.lshr(mask, one), builder.zext(is_less, INTS))
    goes_up = builder.icmp_signed(">", builder.and_(high, mask), half)
    whole = builder.add(builder.ashr(high, right), builder.zext(goes_up, INTS))
    return builder.sitofp(whole, FLOATS)


@operation(VECTOR, VECTOR, VECTOR, VECTOR)
def one_step(builder: Builder, sums: Value, mantissas: Value, shifts: Value) -> Value:
    """The product in 64 bits, shifted to the right once, ties up."""
    product = _product(builder, _integers(builder, sums), _integers(builder, mantissas))
    one, exponents = emit.constant(WORDS, 1), builder.sext(_integers(builder, shifts), WORDS)
    distance = builder.sub(emit.constant(WORDS, 31), exponents)
    half = builder.shl(one, builder.sub(distance, one))
    whole = builder.ashr(builder.add(product, half), distance)
    # Limited in 64 bits, since the lower half alone would wrap around to something between the codes; and far enough
    # from them that every limit that follows saturates the same way.
    for name, limit in (("smax", -_LARGEST), ("smin", _LARGEST)):
        whole = emit.call(builder, f"llvm.{name}.v{LANES}i64", WORDS, [whole, emit.constant(WORDS, limit)])
    return builder.sitofp(builder.trunc(whole, INTS), FLOATS)


@operation(VECTOR, VECTOR, types.int64)
def double_products(builder: Builder, sums: Value, multipliers: Value) -> Value:
    """Products with the FP64 numbers at an address, rounded to whole numbers, ties away from zero."""
    product = builder.fmul(
        builder.sitofp(builder.bitcast(sums, INTS), DOUBLES), emit.load(builder, DOUBLES, multipliers)
    )
    limit = emit.constant(DOUBLES, float(_LARGEST))
    product = builder.select(builder.fcmp_ordered(">", product, limit), limit, product)
    lowest = emit.constant(DOUBLES, -float(_LARGEST))
    product = builder.select(builder.fcmp_ordered("<", product, lowest), lowest, product)
    whole = builder.sitofp(builder.fptosi(product, INTS), DOUBLES)
    # Cut, and then looked at: adding a half before would round the number below 0.5 up, and FP64 has no rounding away
    # from zero as an instruction.
    part = builder.fsub(product, whole)
    up, down = (
        builder.fcmp_ordered(sign, part, emit.constant(DOUBLES, half)) for sign, half in ((">=", 0.5), ("<=", -0.5))
    )
    return builder.fptrunc(_stepped(builder, whole, up, down), FLOATS)


def _stepped(builder: Builder, whole: Value, up: Any, down: Any) -> Value:
    """One more where it goes up, one less where it goes down."""
    one, zero = emit.constant(DOUBLES, 1.0), emit.constant(DOUBLES, 0.0)
    more, less = builder.select(up, one, zero), builder.select(down, one, zero)
    return builder.fsub(builder.fadd(whole, more), less)
