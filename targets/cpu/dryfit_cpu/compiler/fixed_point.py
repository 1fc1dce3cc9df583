"""Requantization in whole numbers: INT32 sums times a fixed-point multiplier, rounded as quantize methods do.

A multiplier m is `M * 2**(S - 31)`: an INT32 mantissa M of 31 bits and a shift S, positive to the left. Sums,
mantissas and shifts come as the bits of vectors; results are whole FP32 numbers. Those beyond 2**24 are not exact, and
far beyond any code.

Source: the definitions in `dryfit.quantization.methods.requantization`, which these equal bit for bit.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.emit import Builder, Value, operation
from dryfit_cpu.compiler.vectors import FLOATS, INTS, LANES, VECTOR, WORDS

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
