"""INT8 values as the integer register block reads them: unsigned bytes 128 above the values, or 16-bit integers."""

from __future__ import annotations

from llvmlite import ir
from numba import types

from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.emit import BYTE, INT, SHORT, WORD, Builder, Loop, Value, load, store, word
from dryfit_cpu.compiler.memory import rounded_bits, saturated
from dryfit_cpu.compiler.operations import operation
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.compiler.vectors import INTS, LANES, VECTOR

STAGED_BYTES = current_tier().staged_bytes
"""Bytes of a staged value."""

_WIDTH = 4 * current_tier().lanes // STAGED_BYTES
"""Values that fill a vector register when they are staged."""


def _staged(builder: Builder, value: Value) -> Value:
    is_vector = isinstance(value.type, ir.VectorType)
    if STAGED_BYTES == 1:
        return value
    return builder.sext(value, emit.vector_of(SHORT, value.type.count) if is_vector else SHORT)


def _move(builder: Builder, kind: Value, destination: Value, source: Value, index: Value) -> None:
    """Stage what lies at an index."""
    to = builder.add(destination, builder.mul(index, word(STAGED_BYTES)))
    store(builder, _staged(builder, load(builder, kind, builder.add(source, index))), to)


@operation(types.void, types.int64, types.int64, types.int64)
def stage_values(builder: Builder, destination: Value, source: Value, count: Value) -> None:
    """Stage so many INT8 values that lie together."""

    def body(builder: Builder, destination: Value, source: Value, count: Value) -> None:
        vectors = builder.sdiv(count, word(_WIDTH))
        whole = emit.vector_of(BYTE, _WIDTH)
        loop = Loop(builder, vectors, [])
        _move(builder, whole, destination, source, builder.mul(loop.index, word(_WIDTH)))
        loop.finish([])
        done = builder.mul(vectors, word(_WIDTH))
        with builder.if_else(builder.icmp_signed(">", vectors, word(0))) as (has_whole, has_none):
            with has_whole:
                # The last vector overlaps the one before.
                _move(builder, whole, destination, source, builder.sub(count, word(_WIDTH)))
            with has_none:
                rest = Loop(builder, builder.sub(count, done), [])
                _move(builder, BYTE, destination, source, rest.index)
                rest.finish([])

    emit.outlined(builder, "stage_values", [destination, source, count], body)


@operation(types.void, types.int64, types.int64, types.int64)
def stage_fill(builder: Builder, destination: Value, count: Value, value: Value) -> None:
    """Write an INT8 value so many times, as it is staged."""
    if STAGED_BYTES == 1:
        emit.fill(builder, destination, builder.trunc(value, BYTE), count)
        return
    loop = Loop(builder, count, [])
    to = builder.add(destination, builder.mul(loop.index, word(STAGED_BYTES)))
    store(builder, builder.trunc(value, SHORT), to)
    loop.finish([])


@operation(types.void, types.int64, types.int64, types.int64, types.int64, types.int64, types.int64)
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

    def body(builder: Builder, *arguments: Value) -> None:
        destination, destination_stride, source, source_stride, rows, count = arguments

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

        with builder.if_else(builder.icmp_signed(">=", count, word(16))) as (many, fewer):
            with many:
                copy_by(16, emit.vector_of(BYTE, 16))
            with fewer, builder.if_else(builder.icmp_signed(">=", count, word(8))) as (some, few):
                with some:
                    copy_by(8, WORD)
                with few:
                    copy_by(1, BYTE)

    arguments = [destination, destination_stride, source, source_stride, rows, count]
    emit.outlined(builder, "copy_rows", arguments, body)


@operation(types.void, types.int64, VECTOR, VECTOR, VECTOR)
def store_pixels(builder: Builder, address: Value, first: Value, second: Value, third: Value) -> None:
    """Write three values a pixel, one after the other, rounded to nearest even and saturated to INT8."""
    word_of_pixel = None
    for channel, value in enumerate((first, second, third)):
        byte = builder.and_(rounded_bits(builder, saturated(builder, value)), emit.constant(INTS, 0xFF))
        byte = builder.shl(byte, emit.constant(INTS, 8 * channel))
        word_of_pixel = byte if word_of_pixel is None else builder.or_(word_of_pixel, byte)
    # Of each register's quarter twelve bytes are left, of each four quarters three: one instruction each.
    bytes_of = builder.bitcast(word_of_pixel, emit.vector_of(BYTE, 4 * LANES))
    quarters = range(0, 4 * LANES, 16)
    kept = [quarter + 4 * pixel + byte for quarter in quarters for pixel in range(4) for byte in range(3)]
    packed = [kept[12 * quarter + byte] if byte < 12 else 0 for quarter in range(len(quarters)) for byte in range(16)]
    lanes = emit.vector_of(INT, 4 * LANES)
    in_quarters = builder.shuffle_vector(bytes_of, bytes_of, ir.Constant(lanes, packed))
    words = builder.bitcast(in_quarters, INTS)
    order = [4 * quarter + lane for quarter in range(len(quarters)) for lane in range(3)]
    together = ir.Constant(emit.vector_of(INT, len(order)), order)
    store(builder, builder.shuffle_vector(words, words, together), address)
