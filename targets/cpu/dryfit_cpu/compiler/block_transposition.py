"""Blocks of values that change rows for columns in registers.

A block lies between a few lines that are long, a register of each of which is copied, and many pieces of 16 bytes: a
piece holds a value of each line. Of 2 bytes, in registers of 32 bytes, 8 lines stand against 16 pieces. Values cross
within 128 bits only, by interleaving pairs of registers; which half of a register a piece is in is a matter of where it
is loaded from or stored to:

```
    lines                    interleaved three times          pieces
    a0 .. a7 | a8 .. a15     a0 b0 .. h0 | a8 b8 .. h8        a0 b0 .. h0
    b0 .. b7 | b8 .. b15     a1 b1 .. h1 | a9 b9 .. h9        a1 b1 .. h1
```

Registers of 64 bytes are no quicker: what moves their quarters takes longer. Measured on Zen 4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types

from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.emit import BYTE, INT, SHORT, Builder, Loop, Value, operation, word
from dryfit_cpu.compiler.line_copies import CACHE_LINE
from dryfit_cpu.compiler.vectors import LANES

PIECE_BYTES = 16
LINE_BYTES = min(32, 4 * LANES)
"""Of a line, what a block has of it."""
_PARTS = LINE_BYTES // PIECE_BYTES
_SHARES = CACHE_LINE // PIECE_BYTES
_NEAR = 4
"""Pieces that are addressed from one base, and one base after the other, as registers are few."""


def _interleaved(builder: Builder, a: Value, b: Value, per_part: int, *, is_high: bool) -> Value:
    """In each 128 bits, the lower or higher half of a's values and b's in turns."""
    count, half = a.type.count, per_part // 2
    first = half if is_high else 0
    order = [
        part + first + place + from_b * count
        for part in range(0, count, per_part)
        for place in range(half)
        for from_b in (0, 1)
    ]
    return emit.shuffled(builder, a, b, order)


def _transposed(builder: Builder, rows: list[Value]) -> list[Value]:
    """The columns of each 128 bits of as many registers as these have values."""
    count = len(rows)
    step = count
    while step > 1:
        # Only interleavings within 128 bits, one cycle each on x86 and Arm: 16 values of 16 rows take 4 rounds of 16
        # instructions instead of 256 loads and stores of a byte.
        # Perfect shuffles: after log2 of them, the rows of each part are its columns.
        rows = [
            _interleaved(builder, rows[place // 2], rows[place // 2 + count // 2], count, is_high=bool(place % 2))
            for place in range(count)
        ]
        step //= 2
    return rows


def _pieces(builder: Builder, base: Value, step: Value, count: int) -> list[Value]:
    """Addresses at equal distances."""
    multiples = [word(0), step, builder.mul(step, word(2)), builder.mul(step, word(3))]
    places: list[Value] = []
    for start in range(0, count, _NEAR):
        if start:
            base = emit.opaque(builder, builder.add(base, builder.mul(step, word(_NEAR))))
        places += [builder.add(base, multiple) for multiple in multiples[: count - start]]
    return places


def _lines(builder: Builder, base: Value, step: Value, lines: Value, spare: Value, count: int) -> list[Value]:
    """Addresses of so many lines, of which those that do not exist are the spare one."""
    # Lines that do not exist are read from, or written to, a spare one: a block then is the same code at the edge of an
    # array, and nothing outside is touched.
    places = []
    for number in range(count):
        exists = builder.icmp_signed(">", lines, word(number))
        places.append(builder.select(exists, base, spare))
        base = builder.add(base, step)
    return places


def _block_operation(element: Any, name: str, copy_block: Callable[..., None], *, is_across: bool = False) -> Any:
    """The operation on blocks of values of this type; across: group by group for each block of the lines."""
    values = PIECE_BYTES * 8 // element.width
    count = values * _PARTS

    @operation(types.void, *[types.int64] * 10)
    def copy_blocks(builder: Builder, *arguments: Value) -> None:
        """Copy between lines and pieces that are `step` and `piece_step` bytes apart.

        Of as many lines as a piece has values, so many blocks one behind the other; and so for so many groups of such
        lines, whose pieces lie beside each other. What is missing of `lines` to fill the groups is the spare line. What
        lies `ahead` bytes ahead of lines, and `ahead_pieces` bytes ahead of pieces that are read, is asked for.
        """
        emit.outlined(builder, f"{name}_{element.width}", arguments, body)

    def body(builder: Builder, *arguments: Value) -> None:
        base, step, pieces, piece_step, lines, groups, spare, blocks, ahead, ahead_pieces = arguments
        to_block = (word(LINE_BYTES), builder.mul(piece_step, word(count)))
        to_group = (builder.mul(step, word(values)), word(PIECE_BYTES))
        (outer_count, outer_step), (inner_count, inner_step) = (groups, to_group), (blocks, to_block)
        if is_across:
            (outer_count, outer_step), (inner_count, inner_step) = (blocks, to_block), (groups, to_group)
        outer = Loop(builder, outer_count, [base, pieces, lines])
        base, pieces, lines = outer.values
        starts = _lines(builder, base, step, lines, spare, values)
        inner = Loop(builder, inner_count, [word(0), pieces])
        along, near = inner.values
        places = [builder.add(start, along) for start in starts]
        copy_block(builder, emit.vector_of(element, values), places, near, piece_step)
        if not is_across:
            for place in places:
                emit.prefetch(builder, builder.add(place, ahead), locality=2)
        if copy_block is _from_pieces:
            # Those beside each other lie in the same cache lines: some of them with each.
            index = inner.index if is_across else outer.index
            share = builder.mul(builder.and_(index, word(_SHARES - 1)), piece_step)
            first = builder.add(builder.add(near, ahead_pieces), share)
            for place in _pieces(builder, first, builder.mul(piece_step, word(_SHARES)), count // _SHARES):
                emit.prefetch(builder, place, locality=2)
        inner.finish([builder.add(value, by) for value, by in zip(inner.values, inner_step, strict=True)])
        left = lines if is_across else builder.sub(lines, word(values))
        outer.finish([*(builder.add(value, by) for value, by in zip((base, pieces), outer_step, strict=True)), left])

    return copy_blocks


def _to_pieces(builder: Builder, piece: Any, lines: list[Value], near: Value, step: Value) -> None:
    """A block from lines to pieces, in their order: what one has too much is overwritten by the next."""
    values = piece.count
    register = emit.vector_of(piece.element, values * _PARTS)
    columns = _transposed(builder, [emit.load(builder, register, line) for line in lines])
    for number, place in enumerate(_pieces(builder, near, step, register.count)):
        column, first = columns[number % values], number // values * values
        emit.store(builder, emit.shuffled(builder, column, column, range(first, first + values)), place)


def _from_pieces(builder: Builder, piece: Any, lines: list[Value], near: Value, step: Value) -> None:
    """A block from pieces to lines."""
    values = piece.count
    pieces = [emit.load(builder, piece, place) for place in _pieces(builder, near, step, values * _PARTS)]
    rows = [_joined(builder, pieces[row::values]) for row in range(values)]
    for column, line in zip(_transposed(builder, rows), lines, strict=True):
        emit.store(builder, column, line)


def _joined(builder: Builder, parts: list[Value]) -> Value:
    """Vectors one behind the other."""
    while len(parts) > 1:
        ends = range(2 * parts[0].type.count)
        parts = [emit.shuffled(builder, a, b, ends) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


words_to_pieces, shorts_to_pieces, bytes_to_pieces = (
    _block_operation(element, "lines_to_pieces", _to_pieces) for element in (INT, SHORT, BYTE)
)
words_from_pieces, shorts_from_pieces, bytes_from_pieces = (
    _block_operation(element, "pieces_to_lines", _from_pieces) for element in (INT, SHORT, BYTE)
)
words_across, shorts_across, bytes_across = (
    _block_operation(element, "pieces_to_lines_across", _from_pieces, is_across=True) for element in (INT, SHORT, BYTE)
)
