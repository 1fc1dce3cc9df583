"""Vector registers as values of native functions: `+ - * /`, limits, choices, reductions, signs, roots, whole numbers.

A `Vector` holds `LANES` FP32 values. How it comes from memory and goes there stands in `memory.py`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.typing.templates import AbstractTemplate, infer_global
from numba.extending import lower_builtin, models, register_model

from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.emit import BYTE, FLOAT, INT, SHORT, WORD, Builder, Value, operation, word
from dryfit_cpu.compiler.tier import current_tier, is_x86

LANES = current_tier().lanes
FLOATS, INTS, SHORTS, BYTES, WORDS = (emit.vector_of(element, LANES) for element in (FLOAT, INT, SHORT, BYTE, WORD))

HAS_FUSED_PRODUCTS = current_tier().name != "generic" or not is_x86()
"""Whether `multiply_add` rounds once."""


class VectorType(types.Type):
    """Numba's type of a vector register."""

    def __init__(self) -> None:
        super().__init__(name=f"Vector{LANES}")  # type: ignore[no-untyped-call]


VECTOR: Any = VectorType()  # type: ignore[no-untyped-call]


@register_model(VectorType)
class _VectorModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, FLOATS)  # type: ignore[no-untyped-call]


def _operator(symbol: Callable[..., Any], generate: Callable[[Builder, Value, Value], Value]) -> None:
    """Give Python's operator this meaning between vectors."""

    def generic(_self: Any, arguments: Any, _keywords: Any) -> Any:
        return VECTOR(VECTOR, VECTOR) if tuple(arguments) == (VECTOR, VECTOR) else None

    def lower(_context: Any, builder: Builder, _signature: Any, values: Any) -> Value:
        return generate(builder, *values)

    infer: Any = infer_global
    infer(symbol)(type("VectorOperator", (AbstractTemplate,), {"key": symbol, "generic": generic}))
    lower_as: Any = lower_builtin
    lower_as(symbol, VECTOR, VECTOR)(lower)


_operator(operator.add, lambda builder, a, b: builder.fadd(a, b))
_operator(operator.sub, lambda builder, a, b: builder.fsub(a, b))
_operator(operator.mul, lambda builder, a, b: builder.fmul(a, b))
_operator(operator.truediv, lambda builder, a, b: builder.fdiv(a, b))


@operation(VECTOR, VECTOR, VECTOR)
def maximum(builder: Builder, a: Value, b: Value) -> Value:
    """The larger of each lane; `b` where either is NaN: pass the limit first and the value second."""
    # Written as x86's `maxps` is defined, so that it becomes that one instruction. `llvm.maxnum` says another thing
    # about NaN, and takes three.
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


@operation(VECTOR, VECTOR, VECTOR)
def minimum(builder: Builder, a: Value, b: Value) -> Value:
    """The smaller of each lane; `b` where either is NaN."""
    return builder.select(builder.fcmp_ordered("<", a, b), a, b)


@operation(VECTOR, VECTOR, VECTOR)
def maximum_or_nan(builder: Builder, a: Value, b: Value) -> Value:
    """The larger of each lane; NaN where either is, as numpy's `maximum`; of two zeros it is either."""
    return emit.call(builder, f"llvm.maximum.v{LANES}f32", FLOATS, [a, b], flags=["nsz"])


@operation(VECTOR, VECTOR, VECTOR)
def minimum_or_nan(builder: Builder, a: Value, b: Value) -> Value:
    """The smaller of each lane; NaN where either is, as numpy's `minimum`; of two zeros it is either."""
    return emit.call(builder, f"llvm.minimum.v{LANES}f32", FLOATS, [a, b], flags=["nsz"])


@operation(VECTOR, VECTOR, VECTOR, VECTOR)
def multiply_add(builder: Builder, a: Value, b: Value, c: Value) -> Value:
    """`a * b + c`, rounded once where the machine can."""
    return emit.multiply_add(builder, a, b, c)


@operation(VECTOR, VECTOR, VECTOR, VECTOR)
def where_negative(builder: Builder, condition: Value, then: Value, otherwise: Value) -> Value:
    """`then` where the condition is below zero, else `otherwise`."""
    return builder.select(builder.fcmp_ordered("<", condition, emit.constant(FLOATS, 0.0)), then, otherwise)


@operation(VECTOR, types.float32)
def splat(builder: Builder, value: Value) -> Value:
    """A vector with the value in each lane."""
    return emit.splat(builder, value, LANES)


@operation(VECTOR, VECTOR)
def power_of_two(builder: Builder, exponent: Value) -> Value:
    """2 to a whole number between -126 and 127; anything for NaN."""
    # Above 2**23 the last bits of an FP32 number are its whole part: no conversion, which has no result for NaN.
    shifted = builder.bitcast(builder.fadd(exponent, emit.constant(FLOATS, 12582912.0)), INTS)
    biased = builder.add(shifted, emit.constant(INTS, 127 - 0x4B400000))
    return builder.bitcast(builder.shl(biased, emit.constant(INTS, 23)), FLOATS)


@operation(VECTOR, VECTOR)
def counted_power_of_two(builder: Builder, value: Value) -> Value:
    """2 to n of `1.5 * 2**23 + 127 + n`, for n between -126 and 127: the last bits of such a number count wholes."""
    return builder.bitcast(builder.shl(builder.bitcast(value, INTS), emit.constant(INTS, 23)), FLOATS)


@operation(VECTOR, VECTOR)
def truncated(builder: Builder, value: Value) -> Value:
    """The whole number next to each lane towards zero, for numbers that INT32 can hold."""
    return builder.sitofp(builder.fptosi(value, INTS), FLOATS)


@operation(VECTOR, VECTOR)
def nearest(builder: Builder, value: Value) -> Value:
    """The whole number nearest to each lane, even at a half, for numbers between -2**22 and 2**22."""
    if current_tier().has_rounding:
        return emit.call(builder, f"llvm.rint.v{LANES}f32", FLOATS, [value])
    # The last bit of a number about 1.5 * 2**23 counts whole numbers.
    large = emit.constant(FLOATS, 12582912.0)
    return builder.fsub(builder.fadd(value, large), large)


def reduction(combine: Callable[[Builder, Value, Value], Value]) -> Callable[..., Value]:
    """The generator of an operation that combines the lanes to one, halves first."""

    def generate(builder: Builder, values: Value) -> Value:
        count = LANES
        while count > 1:
            count //= 2
            order = [lane + count if lane < count else lane for lane in range(LANES)]
            values = combine(builder, values, emit.shuffled(builder, values, values, order))
        return builder.extract_element(values, ir.Constant(INT, 0))

    return generate


sum_of = operation(types.float32, VECTOR)(reduction(lambda builder, a, b: builder.fadd(a, b)))
"""The sum of the lanes, halves first."""
largest_of = operation(types.float32, VECTOR)(
    reduction(lambda builder, a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))
)
"""The largest lane."""


def first_mask(builder: Builder, count: Value, lanes: int = LANES) -> Value:
    """The mask of the first `count` of so many lanes."""
    numbers = ir.Constant(emit.vector_of(count.type, lanes), list(range(lanes)))
    return builder.icmp_signed("<", numbers, emit.splat(builder, count, lanes))


HAS_MASKED_STORES = current_tier().lanes > 8
"""Whether the machine stores some lanes by an instruction as quick as any other: AVX512."""


def store_first(builder: Builder, values: Sequence[Value], addresses: Sequence[Value], count: Value) -> None:
    """Store the first `count` lanes of FP32 vectors, one at least."""
    if HAS_MASKED_STORES:
        mask = first_mask(builder, count, values[0].type.count)
        for value, address in zip(values, addresses, strict=True):
            emit.masked_store(builder, value, builder.inttoptr(address, value.type.as_pointer()), mask)
        return
    # AVX2's masked store takes 32 cycles on a Zen 3: six of them as long as a block of 8 channels sums over 50 words.
    # Halves of what is left, as the bits of the count say, are plain stores; the jumps are for all vectors together.
    with builder.if_else(builder.icmp_signed(">=", count, word(LANES))) as (all_lanes, some_lanes):
        with all_lanes:
            for value, address in zip(values, addresses, strict=True):
                emit.store(builder, value, address)
        with some_lanes:
            _store_by_bits(builder, list(values), list(addresses), count)


def _store_by_bits(builder: Builder, values: list[Value], addresses: list[Value], count: Value) -> None:
    size, number = LANES // 2, len(values)
    while size:
        has_bit = builder.icmp_unsigned("!=", builder.and_(count, word(size)), word(0))
        left = [*values, *addresses]

        def stored(left: Sequence[Value] = left, size: int = size) -> list[Value]:
            for value, address in zip(left[:number], left[number:], strict=True):
                emit.store(builder, emit.shuffled(builder, value, value, range(size)), address)
            order = [*range(size, 2 * size)] * (LANES // size)
            moved = [emit.shuffled(builder, value, value, order) for value in left[:number]]
            return [*moved, *(emit.offset(builder, address, 4 * size) for address in left[number:])]

        left = emit.changed_if(builder, has_bit, left, stored)
        values, addresses, size = left[:number], left[number:], size // 2


@operation(VECTOR, types.int64, VECTOR, VECTOR)
def first_lanes(builder: Builder, count: Value, then: Value, otherwise: Value) -> Value:
    """`then` in the first `count` lanes, `otherwise` in the others."""
    return builder.select(first_mask(builder, count), then, otherwise)


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
