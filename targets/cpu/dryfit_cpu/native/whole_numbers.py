"""Whole numbers, element by element, and their sums along an axis: ids, masks and positions of language models.

INT32 and INT64 wrap around, as the references do. A row is computed in pieces of 64-bit integers on the stack: so there
is a loop for each type and one for each operation, and none for each combination.
"""

from __future__ import annotations

from dryfit_cpu.codes import (
    EQUAL,
    FIRST,
    GREATER,
    GREATER_EQUAL,
    LESS,
    LESS_EQUAL,
    MAX,
    MIN,
    PROD,
    SUB,
    SUM,
    WORD_BYTES,
    WORD_FP32,
    WORD_INT32,
    WORD_INT64,
)
from dryfit_cpu.compiler.compilation import inlined, native, outlined
from dryfit_cpu.compiler.memory import STACK_BYTES, load_int, stack_memory
from dryfit_cpu.compiler.whole_memory import load_whole, store_whole
from dryfit_cpu.descriptors import Chunk, Elements, Extents, WordTable
from dryfit_cpu.native.indices import blocks_of, element, indices, run_of_row, share

_PIECE = STACK_BYTES // 8


@native
def compute(
    chunk: Chunk, operation: int, is_truth: int, a: Elements, b: Elements, output: Elements, extents: Extents
) -> None:
    """`output = operation(a, b)` over four axes; FIRST gives a, in the output's type.

    With `is_truth` the output is BOOL, and a result other than 0 becomes 1. The low bytes of results are kept; to FP32
    they are rounded, and from FP32 cut off, at the ends of INT32 where the output is that, else at those of INT64.
    """
    piece, beside = stack_memory(), stack_memory()
    block, stop = share(chunk, blocks_of(extents, _PIECE))
    while block < stop:
        i0, i1, i2, i3, _, _ = run_of_row(block, stop, extents, _PIECE)
        count = min(extents.axis3 - i3, _PIECE)
        block += 1
        _read(element(a, i0, i1, i2, i3), a.stride3, a.kind, output.kind, piece, count)
        if operation != FIRST:
            _read(element(b, i0, i1, i2, i3), b.stride3, b.kind, output.kind, beside, count)
            _combine(operation, piece, beside, count)
        if is_truth:
            for i in range(count):
                at = piece + 8 * i
                store_whole(at, WORD_INT64, 1 if load_whole(at, WORD_INT64, 0) != 0 else 0)
        _write(piece, element(output, i0, i1, i2, i3), output.stride3, output.kind, count)


@outlined
def _read(source: int, stride: int, kind: int, output_kind: int, piece: int, count: int) -> int:
    """Bring values to 64-bit integers; returns how many."""
    if kind == WORD_BYTES:
        for i in range(count):
            store_whole(piece + 8 * i, WORD_INT64, load_whole(source + i * stride, WORD_BYTES, 0))
    elif kind == WORD_INT32:
        for i in range(count):
            store_whole(piece + 8 * i, WORD_INT64, load_whole(source + i * stride, WORD_INT32, 0))
    elif kind == WORD_INT64:
        for i in range(count):
            store_whole(piece + 8 * i, WORD_INT64, load_whole(source + i * stride, WORD_INT64, 0))
    else:
        is_short = 1 if output_kind == WORD_INT32 else 0
        for i in range(count):
            store_whole(piece + 8 * i, WORD_INT64, load_whole(source + i * stride, WORD_FP32, is_short))
    return count


@outlined
def _write(piece: int, output: int, stride: int, kind: int, count: int) -> int:
    """Store 64-bit integers in another type; returns how many."""
    if kind == WORD_BYTES:
        for i in range(count):
            store_whole(output + i * stride, WORD_BYTES, load_whole(piece + 8 * i, WORD_INT64, 0))
    elif kind == WORD_INT32:
        for i in range(count):
            store_whole(output + i * stride, WORD_INT32, load_whole(piece + 8 * i, WORD_INT64, 0))
    elif kind == WORD_INT64:
        for i in range(count):
            store_whole(output + i * stride, WORD_INT64, load_whole(piece + 8 * i, WORD_INT64, 0))
    else:
        for i in range(count):
            store_whole(output + i * stride, WORD_FP32, load_whole(piece + 8 * i, WORD_INT64, 0))
    return count


@outlined
def _combine(operation: int, piece: int, beside: int, count: int) -> int:
    """`operation` of two rows of 64-bit integers, in the place of the first; returns how many."""
    for i in range(count):
        at = piece + 8 * i
        store_whole(
            at, WORD_INT64, _result(operation, load_whole(at, WORD_INT64, 0), load_whole(beside + 8 * i, WORD_INT64, 0))
        )
    return count


@inlined
def _result(operation: int, x: int, y: int) -> int:
    if operation == SUM:
        return x + y
    if operation == SUB:
        return x - y
    if operation == PROD:
        return x * y
    if operation == MAX:
        return max(x, y)
    if operation == MIN:
        return min(x, y)
    if operation == EQUAL:
        return 1 if x == y else 0
    if operation == GREATER:
        return 1 if x > y else 0
    if operation == LESS:
        return 1 if x < y else 0
    if operation == GREATER_EQUAL:
        return 1 if x >= y else 0
    if operation == LESS_EQUAL:
        return 1 if x <= y else 0
    return 1 if x != y else 0


@native
def accumulate(
    chunk: Chunk,
    operation: int,
    source: Elements,
    output: Elements,
    extents: Extents,
    places: WordTable,
    place_words: int,
) -> None:
    """SUM, PROD, MAX or MIN for each index of three axes.

    What is reduced begins at the byte offsets that are the first words of the places' rows, and goes on from each along
    the last axis.
    """
    for index in range(*share(chunk, extents.axis0 * extents.axis1 * extents.axis2)):
        i0, i1, i2 = indices(index, extents.axis1, extents.axis2)
        start = element(source, i0, i1, i2, 0)
        value = load_whole(start, source.kind, 0)
        for place in range(places.rows):
            at = start + load_int(places.address + place * place_words * 8)
            # The first value is there already.
            for i in range(1 if place == 0 else 0, extents.axis3):
                value = _result(operation, value, load_whole(at + i * source.stride3, source.kind, 0))
        store_whole(element(output, i0, i1, i2, 0), output.kind, value)
