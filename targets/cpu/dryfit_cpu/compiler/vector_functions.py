"""Functions of vectors that are an instruction or a few of them: signs, roots, choices, whole numbers."""

from __future__ import annotations

from typing import Any

from numba import types

from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.emit import Builder, Value
from dryfit_cpu.compiler.operations import operation
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.compiler.vectors import FLOATS, INTS, LANES, VECTOR, reduction

_SIGN = -0x80000000
_WHOLE = 2.0**23
"""From here on every FP32 number is whole."""


def _sign_of(builder: Builder, value: Value) -> Value:
    return builder.and_(builder.bitcast(value, INTS), emit.constant(INTS, _SIGN))


def _magnitude(builder: Builder, value: Value) -> Value:
    bits = builder.and_(builder.bitcast(value, INTS), emit.constant(INTS, 0x7FFFFFFF))
    return builder.bitcast(bits, FLOATS)


def _with_sign(builder: Builder, value: Value, sign: Value) -> Value:
    return builder.bitcast(builder.or_(builder.bitcast(_magnitude(builder, value), INTS), sign), FLOATS)


@operation(VECTOR, VECTOR)
def magnitude(builder: Builder, value: Value) -> Value:
    """Each lane without its sign."""
    return _magnitude(builder, value)


@operation(VECTOR, VECTOR)
def negative(builder: Builder, value: Value) -> Value:
    """Each lane with the other sign."""
    return builder.fneg(value)


@operation(VECTOR, VECTOR, VECTOR)
def with_sign_of(builder: Builder, value: Value, other: Value) -> Value:
    """The magnitude of each lane with the other's sign."""
    return _with_sign(builder, value, _sign_of(builder, other))


@operation(VECTOR, VECTOR)
def square_root(builder: Builder, value: Value) -> Value:
    """The square root of each lane, correctly rounded; NaN below zero."""
    return emit.call(builder, f"llvm.sqrt.v{LANES}f32", FLOATS, [value])


@operation(VECTOR, VECTOR, VECTOR, VECTOR, VECTOR)
def where_less(builder: Builder, a: Value, b: Value, then: Value, otherwise: Value) -> Value:
    """`then` where `a < b`, else `otherwise`, also where either is NaN."""
    return builder.select(builder.fcmp_ordered("<", a, b), then, otherwise)


@operation(VECTOR, VECTOR, VECTOR, VECTOR, VECTOR)
def where_equal(builder: Builder, a: Value, b: Value, then: Value, otherwise: Value) -> Value:
    """`then` where `a == b`, else `otherwise`, also where either is NaN."""
    return builder.select(builder.fcmp_ordered("==", a, b), then, otherwise)


@operation(VECTOR, VECTOR)
def nearest_whole(builder: Builder, value: Value) -> Value:
    """The whole number nearest to each lane, even at a half; zero keeps the sign."""
    return _nearest_whole(builder, value)


def _nearest_whole(builder: Builder, value: Value) -> Value:
    if current_tier().has_rounding:
        return emit.call(builder, f"llvm.rint.v{LANES}f32", FLOATS, [value])
    # The adder drops the fraction where the last bit counts whole numbers. Every machine can do this.
    sign, size, large = _sign_of(builder, value), _magnitude(builder, value), emit.constant(FLOATS, _WHOLE)
    whole = _with_sign(builder, builder.fsub(builder.fadd(size, large), large), sign)
    return builder.select(builder.fcmp_ordered("<", size, large), whole, value)


@operation(VECTOR, VECTOR)
def floor(builder: Builder, value: Value) -> Value:
    """The largest whole number not above each lane."""
    whole = _nearest_whole(builder, value)
    below = builder.fsub(whole, emit.constant(FLOATS, 1.0))
    return builder.select(builder.fcmp_ordered(">", whole, value), below, whole)


@operation(VECTOR, VECTOR)
def ceiling(builder: Builder, value: Value) -> Value:
    """The smallest whole number not below each lane; -0 for what lies between -1 and 0."""
    whole = _nearest_whole(builder, value)
    above = builder.fadd(whole, emit.constant(FLOATS, 1.0))
    higher = builder.select(builder.fcmp_ordered("<", whole, value), above, whole)
    return _with_sign(builder, higher, _sign_of(builder, value))


def _extreme(comparison: str) -> Any:
    def combine(builder: Builder, a: Value, b: Value) -> Value:
        chosen = builder.select(builder.fcmp_ordered(comparison, a, b), a, b)
        return builder.select(builder.fcmp_unordered("uno", a, a), a, chosen)

    return operation(types.float32, VECTOR)(reduction(combine))


largest_or_nan_of = _extreme(">")
"""The largest lane; NaN where one is."""
smallest_or_nan_of = _extreme("<")
"""The smallest lane; NaN where one is."""
product_of = operation(types.float32, VECTOR)(reduction(lambda builder, a, b: builder.fmul(a, b)))
"""The product of the lanes, halves first."""
