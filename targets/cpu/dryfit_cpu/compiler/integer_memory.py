"""INT8 values as the integer register block reads them: bytes, or 16-bit integers.

And how INT8 results are written: four vectors of numbers are rounded together and narrowed by the instructions made for
it, to one run of bytes.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.emit import BYTE, INT, SHORT, WORD, Builder, Loop, Value, load, operation, store, word
from dryfit_cpu.compiler.memory import rounded_bits, saturated
from dryfit_cpu.compiler.tier import current_tier, is_x86
from dryfit_cpu.compiler.vectors import BYTES, INTS, LANES, VECTOR

STAGED_BYTES = current_tier().staged_bytes
"""Bytes of a staged value."""


def value_stager(size: int) -> tuple[Any, Any]:
    """Operations that stage INT8 values as so many bytes each: (those that lie together, one of them many times).

    The first takes destination, source and count; the second one destination, count and the value.
    """
    width = 4 * current_tier().lanes // size
    whole, wide = emit.vector_of(BYTE, width), {BYTE: SHORT, emit.vector_of(BYTE, width): emit.vector_of(SHORT, width)}

    def move(builder: Builder, kind: Value, destination: Value, source: Value, index: Value) -> None:
        value = load(builder, kind, builder.add(source, index))
        value = value if size == 1 else builder.sext(value, wide[kind])
        store(builder, value, builder.add(destination, builder.mul(index, word(size))))

    @emit.outlined_operation(f"stage_values_{size}", types.int64, types.int64, types.int64)
    def stage(builder: Builder, destination: Value, source: Value, count: Value) -> None:
        vectors = builder.sdiv(count, word(width))
        loop = Loop(builder, vectors, [])
        move(builder, whole, destination, source, builder.mul(loop.index, word(width)))
        loop.finish([])
        done = builder.mul(vectors, word(width))
        with builder.if_else(builder.icmp_signed(">", vectors, word(0))) as (has_whole, has_none):
            with has_whole:
                # The last vector overlaps the one before.
                move(builder, whole, destination, source, builder.sub(count, word(width)))
            with has_none:
                rest = Loop(builder, builder.sub(count, done), [])
                move(builder, BYTE, destination, source, rest.index)
                rest.finish([])

    @operation(types.void, types.int64, types.int64, types.int64)
    def fill(builder: Builder, destination: Value, count: Value, value: Value) -> None:
        if size == 1:
            emit.fill(builder, destination, builder.trunc(value, BYTE), count)
            return
        loop = Loop(builder, count, [])
        store(builder, builder.trunc(value, SHORT), builder.add(destination, builder.mul(loop.index, word(size))))
        loop.finish([])

    return stage, fill


@emit.outlined_operation("copy_rows", types.int64, types.int64, types.int64, types.int64, types.int64, types.int64)
def copy_rows(
    builder: Builder,
    destination: Value,
    destination_stride: Value,
    source: Value,
    source_stride: Value,
    rows: Value,
    count: Value,
) -> None:
    """Copy so many bytes of each row, at least one: by 16, 8 or 1 at once, the last ones over the ones before."""

    def copy_by(size: int, kind: Value) -> None:
        by_row = Loop(builder, rows, [destination, source])
        to, at = by_row.values
        last = builder.sub(count, word(size))
        pieces = Loop(builder, builder.udiv(count, word(size)), [])
        move(kind, to, at, builder.mul(pieces.index, word(size)))
        pieces.finish([])
        move(kind, to, at, last)
        by_row.finish([builder.add(to, destination_stride), builder.add(at, source_stride)])

    def move(kind: Value, to: Value, at: Value, index: Value) -> None:
        store(builder, load(builder, kind, builder.add(at, index)), builder.add(to, index))

    # Rows of a block's last channels are short: a call of the system's copy for each would take longer than the
    # copy.
    with builder.if_else(builder.icmp_signed(">=", count, word(16))) as (many, fewer):
        with many:
            copy_by(16, emit.vector_of(BYTE, 16))
        with fewer, builder.if_else(builder.icmp_signed(">=", count, word(8))) as (some, few):
            with some:
                copy_by(8, WORD)
            with few:
                copy_by(1, BYTE)


@operation(types.void, types.int64, VECTOR, VECTOR, VECTOR)
def store_pixels(builder: Builder, address: Value, first: Value, second: Value, third: Value) -> None:
    """Write three values a pixel, one after the other, rounded to nearest even and saturated to INT8."""
    word_of_pixel = None
    # Three bytes of a pixel meet in one 32-bit lane, by shifts, and shuffles drop the fourth: stores of single bytes
    # would be three for each pixel.
    for channel, value in enumerate((first, second, third)):
        byte = builder.and_(rounded_bits(builder, saturated(builder, value)), emit.constant(INTS, 0xFF))
        byte = builder.shl(byte, emit.constant(INTS, 8 * channel))
        word_of_pixel = byte if word_of_pixel is None else builder.or_(word_of_pixel, byte)
    # Of each register's quarter twelve bytes are left, of each four quarters three: one instruction each.
    bytes_of = builder.bitcast(word_of_pixel, emit.vector_of(BYTE, 4 * LANES))
    quarters = range(0, 4 * LANES, 16)
    kept = [quarter + 4 * pixel + byte for quarter in quarters for pixel in range(4) for byte in range(3)]
    packed = [kept[12 * quarter + byte] if byte < 12 else 0 for quarter in range(len(quarters)) for byte in range(16)]
    in_quarters = emit.shuffled(builder, bytes_of, bytes_of, packed)
    words = builder.bitcast(in_quarters, INTS)
    order = [4 * quarter + lane for quarter in range(len(quarters)) for lane in range(3)]
    store(builder, emit.shuffled(builder, words, words, order), address)


PACKED_VALUES = 4 * LANES
"""Values that are stored at once."""

_PACKED = emit.vector_of(BYTE, PACKED_VALUES)
_HAS_PACKS = is_x86() and current_tier().lanes > 4


@operation(types.void, types.int64, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR)
def store_packed(builder: Builder, address: Value, *values: Value) -> None:
    """Write four vectors as INT8, rounded to nearest even, within limits between -128 and 127.

    The last two values are the limits, the same number in all lanes. Numbers are between -2**22 and 2**22, not NaN.
    """
    *numbers, low, high = values
    # Numbers that 1.5 * 2**23 has been added to are in the order of their bits, and hold the rounded one in the lowest.
    low, high = (_in_all_bytes(builder, builder.trunc(rounded_bits(builder, one), BYTES)) for one in (low, high))
    # Limits on bytes, a register full of them at once, and not on each of the four vectors of numbers.
    packed = _packed(builder, numbers)
    for name, limit in (("smax", low), ("smin", high)):
        packed = emit.call(builder, f"llvm.{name}.v{PACKED_VALUES}i8", _PACKED, [packed, limit])
    emit.store(builder, packed, address)


def _in_all_bytes(builder: Builder, value: Value) -> Value:
    """The first byte of a vector, which is in all its lanes, in as many as are stored."""
    return emit.shuffled(builder, value, value, [0] * PACKED_VALUES)


def _packed(builder: Builder, numbers: list[Value]) -> Value:
    """Whole numbers nearest to four vectors of numbers, saturated to INT8, one vector after the other."""
    whole = [nearest_integers(builder, one) for one in numbers]
    if not _HAS_PACKS:
        for name, limit in (("smax", -128), ("smin", 127)):
            whole = [
                emit.call(builder, f"llvm.{name}.v{LANES}i32", INTS, [one, emit.constant(INTS, limit)]) for one in whole
            ]
        a, b, c, d = (builder.trunc(one, BYTES) for one in whole)
        return _joined(builder, _joined(builder, a, b), _joined(builder, c, d))
    packed = emit.packed(builder, emit.packed(builder, *whole[:2]), emit.packed(builder, *whole[2:]))
    # Each 128 bits hold four numbers of each vector: bring those of a vector together.
    quarters = LANES // 4
    order = [4 * quarter + vector for vector in range(4) for quarter in range(quarters)]
    fours = builder.bitcast(packed, INTS)
    return builder.bitcast(emit.shuffled(builder, fours, fours, order), _PACKED)


def nearest_integers(builder: Builder, value: Value) -> Value:
    """The whole numbers nearest to numbers between -2**22 and 2**22, even at a half, as INT32."""
    if _HAS_PACKS and LANES == 16:
        arguments = [value, emit.constant(INTS, 0), ir.Constant(SHORT, -1), ir.Constant(INT, 4)]
        return emit.call(builder, "llvm.x86.avx512.mask.cvtps2dq.512", INTS, arguments)
    if _HAS_PACKS:
        return emit.call(builder, "llvm.x86.avx.cvt.ps2dq.256", INTS, [value])
    return builder.sub(rounded_bits(builder, value), emit.constant(INTS, 0x4B400000))


def _joined(builder: Builder, a: Value, b: Value) -> Value:
    return emit.shuffled(builder, a, b, range(2 * a.type.count))
