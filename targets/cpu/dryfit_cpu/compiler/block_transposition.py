"""Blocks of values that change rows for columns in registers.

A block of n x n values is read as n rows; of 1 and 2 bytes, two such blocks at once, the rows of one behind those of
the other, so that a column is twice as long. First the 128-bit quarters of the registers are transposed each in itself,
by interleaving pairs of rows; then the quarters change their places:

```
    rows          interleaved twice           quarters in place
    a0 .. a15     a0 b0 c0 d0 | a4 b4 ..      a0 b0 c0 d0 | e0 f0 g0 h0 | ..
    b0 .. b15     a1 b1 c1 d1 | a5 b5 ..      a1 b1 c1 d1 | ..
```
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types

from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.emit import BYTE, INT, SHORT, Builder, Loop, Value, word
from dryfit_cpu.compiler.operations import operation
from dryfit_cpu.compiler.vectors import LANES

WORD_BLOCK, SHORT_BLOCK, BYTE_BLOCK = LANES, 8, 16
"""Values of a row of a block, of 4, 2 and 1 bytes. It has as many rows, or, below 4 bytes, twice as many."""
CACHE_LINE = 64


def _chosen(builder: Builder, a: Value, b: Value, order: Sequence[int]) -> Value:
    return builder.shuffle_vector(a, b, ir.Constant(emit.vector_of(INT, len(order)), list(order)))


def _interleaved(builder: Builder, a: Value, b: Value, per_quarter: int, *, is_high: bool) -> Value:
    """In each 128 bits, the lower or higher half of a's values and b's in turns."""
    count, half = a.type.count, per_quarter // 2
    first = half if is_high else 0
    order = [
        quarter + first + place + from_b * count
        for quarter in range(0, count, per_quarter)
        for place in range(half)
        for from_b in (0, 1)
    ]
    return _chosen(builder, a, b, order)


def _quarters_transposed(builder: Builder, rows: list[Value], per_quarter: int) -> list[Value]:
    """As many registers as each has quarters, with rows for columns of quarters."""
    if len(rows) == 1:
        return rows
    count = rows[0].type.count

    def every_other(a: Value, b: Value, start: int) -> Value:
        quarters = range(start, 2 * count // per_quarter, 2)
        return _chosen(builder, a, b, [q * per_quarter + place for q in quarters for place in range(per_quarter)])

    # Pairs give up their even quarters and their odd ones; the halves are then two smaller problems.
    even, odd = ([every_other(a, b, start) for a, b in zip(rows[::2], rows[1::2], strict=True)] for start in (0, 1))
    if len(rows) == 2:
        return [*even, *odd]
    first, second = (_quarters_of_pair(every_other, pair) for pair in (even, odd))
    return [first[0], second[0], first[1], second[1]]


def _quarters_of_pair(every_other: Callable[[Value, Value, int], Value], pair: Sequence[Value]) -> list[Value]:
    a, b = pair
    return [every_other(a, b, 0), every_other(a, b, 1)]


def transposed(builder: Builder, rows: list[Value]) -> list[Value]:
    """The columns of as many registers as each has values."""
    per_quarter = 128 // rows[0].type.element.width
    groups = []
    for start in range(0, len(rows), per_quarter):
        group = rows[start : start + per_quarter]
        step = per_quarter
        while step > 1:
            # Perfect shuffles: after log2 of them, the rows of each quarter are its columns.
            half = per_quarter // 2
            group = [
                _interleaved(builder, group[place // 2], group[place // 2 + half], per_quarter, is_high=bool(place % 2))
                for place in range(per_quarter)
            ]
            step //= 2
        groups.append(group)
    columns: list[Value] = [None] * len(rows)
    for place in range(per_quarter):
        for quarter, value in enumerate(_quarters_transposed(builder, [group[place] for group in groups], per_quarter)):
            columns[quarter * per_quarter + place] = value
    return columns


def _block_operation(element: Any, rows: int, values: int) -> Any:
    """The operation on blocks of so many rows of so many values each."""
    kind, size = emit.vector_of(element, values), element.width // 8
    turns = CACHE_LINE // (values * size)
    asked = rows // turns

    @operation(types.void, *[types.int64] * 9)
    def transpose_blocks(builder: Builder, *arguments: Value) -> None:
        """Transpose so many blocks.

        Rows are `step` bytes apart and become columns `to_step` bytes apart; `next_` and `to_next` lead from block to
        block. The cache lines of rows `ahead_step` bytes apart that begin at `ahead` are asked for on the way: with
        each block a share of them, as the next blocks of a row lie in the same line.
        """
        emit.outlined(builder, f"transpose_blocks_{element.width}", arguments, body)

    def body(builder: Builder, *arguments: Value) -> None:
        to, to_step, at, step, blocks, to_next, next_, ahead, ahead_step = arguments
        loop = Loop(builder, blocks, [at, to, ahead])
        here, there, coming = loop.values
        loaded = [emit.load(builder, kind, place) for place in _steps(builder, here, step, rows)]
        if rows > values:
            pairs = zip(loaded[:values], loaded[values:], strict=True)
            loaded = [_chosen(builder, a, b, range(rows)) for a, b in pairs]
        share = builder.mul(builder.and_(loop.index, word(turns - 1)), builder.mul(ahead_step, word(asked)))
        for place in _steps(builder, builder.add(coming, share), ahead_step, asked):
            emit.prefetch(builder, place, locality=2)
        columns = transposed(builder, loaded)
        for value, place in zip(columns, _steps(builder, there, to_step, values), strict=True):
            emit.store(builder, value, place)
        loop.finish([builder.add(here, next_), builder.add(there, to_next), builder.add(coming, next_)])

    return transpose_blocks


def _steps(builder: Builder, base: Value, step: Value, count: int) -> list[Value]:
    """Addresses at equal distances: four from each base, and one base after the other, as registers are few."""
    multiples = [word(0), step, builder.mul(step, word(2)), builder.mul(step, word(3))]
    places: list[Value] = []
    for start in range(0, count, len(multiples)):
        if start:
            base = emit.opaque(builder, builder.add(base, builder.mul(step, word(len(multiples)))))
        places += [builder.add(base, multiple) for multiple in multiples[: count - start]]
    return places


transpose_words = _block_operation(INT, WORD_BLOCK, WORD_BLOCK)
transpose_shorts = _block_operation(SHORT, 2 * SHORT_BLOCK, SHORT_BLOCK)
transpose_bytes = _block_operation(BYTE, 2 * BYTE_BLOCK, BYTE_BLOCK)
