"""Square blocks of values that change rows for columns in registers.

A block of n x n values is read as n rows. First the 128-bit quarters of the registers are transposed each in itself, by
interleaving pairs of rows; then the quarters change their places:

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
"""Rows of a block of values of 4, 2 and 1 bytes."""


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


def _block_operation(element: Any, size: int) -> Any:
    kind = emit.vector_of(element, size)

    @operation(types.void, *[types.int64] * 5)
    def transpose_blocks(builder: Builder, to: Value, to_step: Value, at: Value, step: Value, blocks: Value) -> None:
        """Transpose blocks side by side: rows `step` bytes apart and so many blocks long become columns."""

        def body(builder: Builder, to: Value, to_step: Value, at: Value, step: Value, blocks: Value) -> None:
            loop = Loop(builder, blocks, [at, to])
            here, there = loop.values
            rows = [emit.load(builder, kind, place) for place in _steps(builder, here, step, size)]
            columns = transposed(builder, rows)
            for value, place in zip(columns, _steps(builder, there, to_step, size), strict=True):
                emit.store(builder, value, place)
            loop.finish(
                [
                    builder.add(here, word(size * element.width // 8)),
                    builder.add(there, builder.mul(to_step, word(size))),
                ]
            )

        emit.outlined(builder, f"transpose_blocks_{element.width}", [to, to_step, at, step, blocks], body)

    return transpose_blocks


def _steps(builder: Builder, base: Value, step: Value, count: int) -> list[Value]:
    """Addresses at equal distances, one after the other, so that they need no registers of their own."""
    places = [base]
    for _ in range(count - 1):
        places.append(emit.opaque(builder, builder.add(places[-1], step)))
    return places


transpose_words = _block_operation(INT, WORD_BLOCK)
transpose_shorts = _block_operation(SHORT, SHORT_BLOCK)
transpose_bytes = _block_operation(BYTE, BYTE_BLOCK)
