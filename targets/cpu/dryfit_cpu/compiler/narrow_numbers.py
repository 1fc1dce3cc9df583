"""INT4, FP8 E4M3, FP4 E2M1 and E8M0 as vectors: codes, which lie one a byte, to FP32 and back.

An FP32 number holds each of their values exactly. What is written is saturated and rounded to nearest, ties to even, as
`dryfit.reference.precision.convert` does it, signs of zero and of NaN included; nothing here relies on how the
processor treats subnormal numbers.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types

from dryfit_cpu.codes import E8M0, FP4, FP8, INT4, INT8
from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.compilation import inlined
from dryfit_cpu.compiler.emit import INT, Builder, Value, operation
from dryfit_cpu.compiler.memory import limited_lanes, read, rounded_bits, write
from dryfit_cpu.compiler.vectors import BYTES, FLOATS, INTS, LANES, VECTOR, first_mask

_SIGN = -0x80000000
_INFINITY, _NAN = 0x7F800000, 0x7FC00000


def _bits_of(number: float) -> int:
    return int(struct.unpack("<i", struct.pack("<f", number))[0])


def _int(number: int) -> Value:
    return emit.constant(INTS, number)


def widened_int4(builder: Builder, code: Value) -> Value:
    """The lowest four bits of each lane as a signed whole number."""
    return builder.sitofp(builder.ashr(builder.shl(code, _int(28)), _int(28)), FLOATS)


def widened_fp4(builder: Builder, code: Value) -> Value:
    """The lowest four bits of each lane as E2M1."""
    magnitude = builder.and_(code, _int(7))
    normal = builder.add(builder.shl(magnitude, _int(22)), _int(126 << 23))
    half = builder.select(builder.icmp_signed("==", magnitude, _int(1)), _int(_bits_of(0.5)), _int(0))
    bits = builder.select(builder.icmp_signed(">", magnitude, _int(1)), normal, half)
    return builder.bitcast(builder.or_(bits, builder.shl(builder.and_(code, _int(8)), _int(28))), FLOATS)


def widened_fp8(builder: Builder, code: Value) -> Value:
    """The lowest eight bits of each lane as E4M3."""
    magnitude = builder.and_(code, _int(0x7F))
    # By bits: exponent and fraction move to FP32's places, and 120 is the difference of the biases. A table of 256
    # would be a gather for each vector.
    normal = builder.add(builder.shl(magnitude, _int(20)), _int(120 << 23))
    subnormal = builder.fmul(builder.sitofp(magnitude, FLOATS), emit.constant(FLOATS, 2.0**-9))
    bits = builder.select(builder.icmp_signed("<", magnitude, _int(8)), builder.bitcast(subnormal, INTS), normal)
    bits = builder.select(builder.icmp_signed("==", magnitude, _int(0x7F)), _int(_NAN), bits)
    return builder.bitcast(builder.or_(bits, builder.shl(builder.and_(code, _int(0x80)), _int(24))), FLOATS)


def widened_e8m0(builder: Builder, code: Value) -> Value:
    """A byte in each lane as a power of two."""
    lowest = builder.select(builder.icmp_signed("==", code, _int(0)), _int(1 << 22), builder.shl(code, _int(23)))
    bits = builder.select(builder.icmp_signed("==", code, _int(255)), _int(_NAN), lowest)
    return builder.bitcast(bits, FLOATS)


def widened_int8(builder: Builder, code: Value) -> Value:
    """The lowest eight bits of each lane as a signed whole number."""
    return builder.sitofp(builder.ashr(builder.shl(code, _int(24)), _int(24)), FLOATS)


def _narrowed_float(
    builder: Builder, value: Value, mantissa: int, smallest: float, largest: float
) -> tuple[Value, Value, Value]:
    """(code of the magnitude, sign in the highest bit, whether it is NaN) of a type without infinities.

    The type has so many bits behind the point, and these smallest normal and largest numbers.
    """
    bits = builder.bitcast(value, INTS)
    sign = builder.and_(bits, _int(_SIGN))
    magnitude = builder.xor(bits, sign)
    is_nan = builder.icmp_signed(">", magnitude, _int(_INFINITY))
    limit = _int(_bits_of(largest))
    # Saturated before it is rounded: these types have no infinity, and a carry above the largest number would be NaN.
    magnitude = builder.select(builder.icmp_signed(">", magnitude, limit), limit, magnitude)
    dropped = 23 - mantissa
    odd = builder.and_(builder.lshr(magnitude, _int(dropped)), _int(1))
    # Rounded by an integer addition whose carry goes up into the exponent by itself; ties to even by the bit that
    # stays.
    carried = builder.add(builder.add(magnitude, odd), _int((1 << (dropped - 1)) - 1))
    first = (_bits_of(smallest) >> dropped) - (1 << mantissa)
    normal = builder.sub(builder.lshr(carried, _int(dropped)), _int(first))
    # Below the smallest normal number: FP32's own addition rounds to multiples of the smallest subnormal one.
    anchor = smallest / 2**mantissa * 2.0**23
    shifted = builder.fadd(builder.bitcast(magnitude, FLOATS), emit.constant(FLOATS, anchor))
    subnormal = builder.sub(builder.bitcast(shifted, INTS), _int(_bits_of(anchor)))
    is_small = builder.icmp_signed("<", magnitude, _int(_bits_of(smallest)))
    return builder.select(is_small, subnormal, normal), sign, is_nan


def _narrowed_fp8(builder: Builder, value: Value) -> Value:
    code, sign, is_nan = _narrowed_float(builder, value, 3, 2.0**-6, 448.0)
    return builder.or_(builder.select(is_nan, _int(0x7F), code), builder.lshr(sign, _int(24)))


def _narrowed_fp4(builder: Builder, value: Value) -> Value:
    code, sign, is_nan = _narrowed_float(builder, value, 1, 1.0, 6.0)
    sign = builder.lshr(sign, _int(28))
    # There is no NaN. ml_dtypes makes it a zero of the other sign.
    return builder.select(is_nan, builder.xor(sign, _int(8)), builder.or_(code, sign))


def _narrowed_e8m0(builder: Builder, value: Value) -> Value:
    """The power of two that is not below a number; NaN for negative ones."""
    bits = builder.bitcast(value, INTS)
    magnitude = builder.and_(bits, _int(0x7FFFFFFF))
    exponent = builder.lshr(magnitude, _int(23))
    fraction = builder.and_(magnitude, _int(0x7FFFFF))
    least = builder.select(builder.icmp_signed("==", exponent, _int(0)), _int(1 << 22), _int(0))
    power = builder.add(exponent, builder.zext(builder.icmp_signed(">", fraction, least), INTS))
    power = builder.select(builder.icmp_signed(">", power, _int(254)), _int(254), power)
    is_negative = builder.and_(builder.icmp_signed("<", bits, _int(0)), builder.icmp_signed("!=", magnitude, _int(0)))
    is_wrong = builder.or_(is_negative, builder.icmp_signed(">", magnitude, _int(_INFINITY)))
    return builder.select(is_wrong, _int(255), power)


def _narrowed_int4(builder: Builder, value: Value) -> Value:
    limits = emit.constant(FLOATS, -8.0), emit.constant(FLOATS, 7.0)
    return builder.and_(rounded_bits(builder, limited_lanes(builder, value, *limits)), _int(15))


def _loader(widen: Callable[[Builder, Value], Value]) -> tuple[Any, Any]:
    """Operations that load all lanes, and the first `count` lanes."""

    @operation(VECTOR, types.int64)
    def whole(builder: Builder, address: Value) -> Value:
        return widen(builder, builder.zext(emit.load(builder, BYTES, address), INTS))

    @operation(VECTOR, types.int64, types.int64)
    def part(builder: Builder, address: Value, count: Value) -> Value:
        pointer = builder.inttoptr(address, BYTES.as_pointer())
        code = emit.masked_load(builder, BYTES, pointer, first_mask(builder, count))
        return widen(builder, builder.zext(code, INTS))

    return whole, part


def _storer(narrow: Callable[[Builder, Value], Value]) -> Any:
    """A function that stores the first `count` lanes, or all of them."""

    @operation(types.void, types.int64, VECTOR)
    def whole(builder: Builder, address: Value, value: Value) -> None:
        emit.store(builder, builder.trunc(narrow(builder, value), BYTES), address)

    @operation(types.void, types.int64, VECTOR, types.int64)
    def part(builder: Builder, address: Value, value: Value, count: Value) -> None:
        code = builder.trunc(narrow(builder, value), BYTES)
        # LLVM 22 stores one byte that it extracts from a vector of words as four bytes, if it knows that it is one.
        pointer = builder.inttoptr(address, BYTES.as_pointer())
        emit.masked_store(builder, code, pointer, first_mask(builder, emit.opaque(builder, count)))

    @inlined
    def write_lanes(address: int, value: Any, count: int) -> None:
        if count >= LANES:
            whole(address, value)
        else:
            part(address, value, count)

    return write_lanes


_load_int4, _load_int4_part = _loader(widened_int4)
_load_fp4, _load_fp4_part = _loader(widened_fp4)
_load_fp8, _load_fp8_part = _loader(widened_fp8)
_load_e8m0, _load_e8m0_part = _loader(widened_e8m0)
_store_int4, _store_fp4, _store_fp8, _store_e8m0 = map(
    _storer, (_narrowed_int4, _narrowed_fp4, _narrowed_fp8, _narrowed_e8m0)
)


@operation(VECTOR, VECTOR)
def in_all_lanes(builder: Builder, value: Value) -> Value:
    """The first lane in each lane."""
    return emit.splat(builder, builder.extract_element(value, ir.Constant(INT, 0)), LANES)


@inlined
def read_narrow(address: int, kind: int, count: int) -> Any:
    """The first `count` numbers, which lie together: of any element type but those that `read` alone knows."""
    if count >= LANES:
        if kind == INT4:
            return _load_int4(address)
        if kind == FP4:
            return _load_fp4(address)
        if kind == FP8:
            return _load_fp8(address)
        if kind == E8M0:
            return _load_e8m0(address)
    if kind == INT4:
        return _load_int4_part(address, count)
    if kind == FP4:
        return _load_fp4_part(address, count)
    if kind == FP8:
        return _load_fp8_part(address, count)
    if kind == E8M0:
        return _load_e8m0_part(address, count)
    return read(address, 4 >> (kind & 3), kind, count)


@inlined
def read_scale(address: int, stride: int, kind: int, count: int) -> Any:
    """The scales of `count` numbers: `stride` is 0 where they share one, else an element's size."""
    if stride == 0:
        return in_all_lanes(read_narrow(address, kind, 1))
    return read_narrow(address, kind, count)


@inlined
def write_narrow(address: int, kind: int, value: Any, count: int) -> None:
    """Store the first `count` lanes together, saturated and rounded to nearest even."""
    if kind == INT8:
        write(address, 1, kind, value, count)
    elif kind == INT4:
        _store_int4(address, value, count)
    elif kind == FP4:
        _store_fp4(address, value, count)
    elif kind == FP8:
        _store_fp8(address, value, count)
    else:
        _store_e8m0(address, value, count)


@operation(VECTOR, VECTOR)
def largest_or_nan(builder: Builder, values: Value) -> Value:
    """The largest lane in the first lane; NaN where one is NaN. Other lanes hold anything."""
    count = LANES
    while count > 1:
        count //= 2
        order = [lane + count if lane < count else lane for lane in range(LANES)]
        other = emit.shuffled(builder, values, values, order)
        larger = builder.select(builder.fcmp_ordered(">", values, other), values, other)
        values = builder.select(builder.fcmp_unordered("uno", values, values), values, larger)
    return values


@operation(VECTOR, VECTOR, VECTOR)
def quotient_or_zero(builder: Builder, value: Value, divisor: Value) -> Value:
    """`value / divisor`; 0 where the divisor is 0."""
    zero = emit.constant(FLOATS, 0.0)
    return builder.select(builder.fcmp_unordered("une", divisor, zero), builder.fdiv(value, divisor), zero)
