"""Transforms of small tiles of vectors, `M tile M^T`, as straight code: no loops, no zeros, no products by one.

Rows of a matrix that differ in signs only are computed as a sum and a difference of two parts, and so are columns:

    row 1:  e + o      e: what has the same sign in both        (a, b, c)          a v0 + b (v1 + v2)
    row 2:  e - o      o: what has not                          (a, b, -c) ...     ... and (v1 - v2) where b is -b
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types

from dryfit.attrs_classes import frozen
from dryfit_cpu.codes import PANEL_CHANNELS
from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.emit import BYTE, INT, SHORT, Builder, Loop, Value, load, offset, store, word
from dryfit_cpu.compiler.register_block import PANEL_ROW_BYTES
from dryfit_cpu.compiler.vectors import FLOATS, INTS, LANES

Row = Sequence[int]
SHORTS = emit.vector_of(SHORT, 2 * LANES)
"""A register of 16-bit integers."""


@frozen
class TileArithmetic:
    """How vectors of one kind of numbers are added and multiplied.

    Attributes:
        add, subtract, multiply: (builder, vector, vector) -> vector.
        multiply_add: (builder, a, b, c) -> a * b + c.
    """

    add: Callable[[Builder, Value, Value], Value]
    subtract: Callable[[Builder, Value, Value], Value]
    multiply: Callable[[Builder, Value, Value], Value]
    multiply_add: Callable[[Builder, Value, Value, Value], Value]


def _whole_multiply_add(builder: Builder, a: Value, b: Value, c: Value) -> Value:
    return builder.add(builder.mul(a, b), c)


REAL = TileArithmetic(ir.IRBuilder.fadd, ir.IRBuilder.fsub, ir.IRBuilder.fmul, emit.multiply_add)
WHOLE = TileArithmetic(ir.IRBuilder.add, ir.IRBuilder.sub, ir.IRBuilder.mul, _whole_multiply_add)
"""Of integers of any width; what does not fit wraps around."""


def input_transform(name: str, matrix: Sequence[Row]) -> Any:
    """An operation that transforms a tile of FP32.

    Its arguments: address of the tile's first vector, bytes between its rows and between its columns; the same three
    of the result.
    """
    return _input_transform(name, REAL, matrix, _real_vector)


def byte_input_transform(name: str, matrix: Sequence[Row]) -> Any:
    """An operation that transforms a tile of signed bytes to 16-bit integers; arguments as in `input_transform`."""
    return _input_transform(name, WHOLE, matrix, _widened_bytes)


def _input_transform(
    name: str, arithmetic: TileArithmetic, matrix: Sequence[Row], read: Callable[[Builder, Value], Value]
) -> Any:
    @emit.outlined_operation(name, *[types.int64] * 6)
    def transform(builder: Builder, *arguments: Value) -> None:
        tile = _loaded(builder, read, len(matrix[0]), *arguments[:3])
        _store(builder, _on_both_sides(builder, arithmetic, matrix, tile), *arguments[3:])

    return transform


def output_transform(name: str, matrix: Sequence[Row]) -> Any:
    """An operation that transforms a tile of FP32, adds a vector to each of the result, and clamps it.

    Its arguments: those of an input transform; address of what is added; lower and upper limit.
    """

    @emit.outlined_operation(name, *[types.int64] * 7, types.float32, types.float32)
    def transform(builder: Builder, *arguments: Value) -> None:
        *places, added, low, high = arguments
        tile = _loaded(builder, _real_vector, len(matrix[0]), *places[:3])
        bias = _real_vector(builder, added)
        limits = emit.splat(builder, low, LANES), emit.splat(builder, high, LANES)
        lines = _on_both_sides(builder, REAL, matrix, tile)
        finished = [[emit.clamped(builder, builder.fadd(value, bias), *limits) for value in line] for line in lines]
        _store(builder, finished, *places[3:])

    return transform


def exact_output_transform(name: str, matrix: Sequence[Row], multiples: Sequence[int]) -> Any:
    """An operation that transforms a tile of INT32 that stands for larger numbers, and adds a vector to each result.

    The rows of the matrix give `multiples` of the results, so that both together give products of two of them. All is
    computed modulo 2**32. There an odd number has an inverse: multiplying by it divides, and what is left is a power of
    two, which shifting to the right takes away with the sign kept. So results are exact, whatever wrapped around on
    the way, where they lie between -2**31 and 2**31 divided by that power.

    Its arguments: address of the tile's first vector, bytes between its rows and between its columns; the same three
    of the result; address of what is added.
    """

    @emit.outlined_operation(name, *[types.int64] * 7)
    def transform(builder: Builder, *arguments: Value) -> None:
        *places, added = arguments
        tile = _loaded(builder, _whole_vector, len(matrix[0]), *places[:3])
        lines = _on_both_sides(builder, WHOLE, matrix, tile)
        starts = _whole_vector(builder, added)
        finished = [
            [
                builder.add(_divided(builder, value, down * across), starts)
                for value, across in zip(line, multiples, strict=True)
            ]
            for line, down in zip(lines, multiples, strict=True)
        ]
        _store(builder, finished, *places[3:])

    return transform


def window_transform(name: str, matrix: Sequence[Row]) -> Any:
    """An operation that transforms windows of 3 x 3 weights, signed bytes, to two rows of their positions.

    What it reads is `[pairs, 3 * 3, 32, 2]`: pairs of input channels, places in the window, output channels; what it
    writes `[2, columns, pairs, 32, 2]`, 16-bit integers.

    Its arguments, all integers: half of the first row's index; address of the windows; pairs; address of the result,
    and bytes from one column of it to the next.
    """
    taps = range(len(matrix[0]))

    @emit.outlined_operation(name, *[types.int64] * 5)
    def transform(builder: Builder, index: Value, windows: Value, pairs: Value, to: Value, column_bytes: Value) -> None:
        end = builder.append_basic_block("end")
        choice = builder.switch(index, end)
        for first_row in range(0, len(matrix), 2):
            block = builder.append_basic_block(f"rows_{first_row}")
            choice.add_case(word(first_row // 2), block)
            builder.position_at_end(block)
            loop = Loop(builder, pairs, [])
            window = builder.add(windows, builder.mul(loop.index, word(2 * PANEL_CHANNELS * len(taps) ** 2)))
            start = builder.add(to, builder.mul(loop.index, word(PANEL_ROW_BYTES)))
            # Two rows of positions at a time: the matrix has its rows in pairs that share the most, and two transformed
            # rows of a panel are what the cache has room for beside the tiles.
            for first in range(0, 2 * PANEL_CHANNELS, 2 * LANES):
                places = [[2 * PANEL_CHANNELS * (line * len(taps) + tap) + first for line in taps] for tap in taps]
                columns = [[_widened_bytes(builder, offset(builder, window, at)) for at in column] for column in places]
                sums = [_product(builder, WHOLE, matrix[first_row : first_row + 2], column) for column in columns]
                results = [value for row in zip(*sums, strict=True) for value in _product(builder, WHOLE, matrix, row)]
                for column, value in enumerate(results):
                    at = builder.add(start, builder.mul(column_bytes, word(column)))
                    store(builder, value, offset(builder, at, 2 * first))
            loop.finish([])
            builder.branch(end)
        builder.position_at_end(end)

    return transform


def _divided(builder: Builder, value: Value, divisor: int) -> Value:
    """Multiples of a divisor, known modulo 2**32, divided by it."""
    power = (divisor & -divisor).bit_length() - 1
    # The inverse of an odd number modulo 2**32 makes an exact division one product: a division of 32-bit integers has
    # no vector instruction on any processor that this is for.
    inverse = pow(divisor >> power, -1, 1 << INT.width)
    return builder.ashr(builder.mul(value, emit.constant(INTS, inverse)), emit.constant(INTS, power))


def _on_both_sides(
    builder: Builder, arithmetic: TileArithmetic, matrix: Sequence[Row], tile: Sequence[Sequence[Value]]
) -> list[list[Value]]:
    """`matrix tile matrix^T`."""
    columns = [_product(builder, arithmetic, matrix, column) for column in zip(*tile, strict=True)]
    return [_product(builder, arithmetic, matrix, line) for line in zip(*columns, strict=True)]


def _product(
    builder: Builder, arithmetic: TileArithmetic, matrix: Sequence[Row], values: Sequence[Value]
) -> list[Value]:
    """`matrix values`."""
    # The matrices are nearly all zeros, ones and mirrored pairs. Written out so, a transform takes far fewer operations
    # than two matrix products; generated, it is right for every matrix that is put in.
    rows, values = _with_joined_columns(builder, arithmetic, matrix, values)
    results: list[Value] = []
    while len(results) < len(rows):
        at = len(results)
        parts = _mirrored(*rows[at : at + 2])
        if parts is None:
            results.append(_combination(builder, arithmetic, rows[at], values))
        else:
            even, odd = (_combination(builder, arithmetic, part, values) for part in parts)
            results += [arithmetic.add(builder, even, odd), arithmetic.subtract(builder, even, odd)]
    return results


def _with_joined_columns(
    builder: Builder, arithmetic: TileArithmetic, matrix: Sequence[Row], values: Sequence[Value]
) -> tuple[list[Row], list[Value]]:
    """The same product, with the sums and differences of values in the place of those whose columns are mirrored."""
    columns, taken = list(zip(*matrix, strict=True)), 0
    joined: list[Row] = []
    joined_values: list[Value] = []
    while taken < len(columns):
        parts = _mirrored(*columns[taken : taken + 2])
        if parts is None:
            joined.append(columns[taken])
            joined_values.append(values[taken])
            taken += 1
        else:
            joined += parts
            first, second = values[taken : taken + 2]
            joined_values += [arithmetic.add(builder, first, second), arithmetic.subtract(builder, first, second)]
            taken += 2
    return list(zip(*joined, strict=True)), joined_values


def _mirrored(first: Row, second: Row = ()) -> tuple[Row, Row] | None:
    """What is the same in both, and what has the other sign in the second; None where they differ in more, or less."""
    even = [a if a == b else 0 for a, b in zip(first, second, strict=False)]
    odd = [a if a == -b else 0 for a, b in zip(first, second, strict=False)]
    is_mirrored = len(first) == len(second) and all(abs(a) == abs(b) for a, b in zip(first, second, strict=True))
    return (even, odd) if is_mirrored and any(even) and any(odd) else None


def _combination(builder: Builder, arithmetic: TileArithmetic, coefficients: Row, values: Sequence[Value]) -> Value:
    """The sum of values times whole numbers; it begins at one that is taken once, where there is one."""
    terms = [(number, value) for number, value in zip(coefficients, values, strict=True) if number]
    (number, total), *others = sorted(terms, key=lambda term: term[0] != 1)
    if number != 1:
        total = arithmetic.multiply(builder, total, emit.constant(total.type, number))
    for number, value in others:
        if number == 1:
            total = arithmetic.add(builder, total, value)
        elif number == -1:
            total = arithmetic.subtract(builder, total, value)
        else:
            total = arithmetic.multiply_add(builder, value, emit.constant(value.type, number), total)
    return total


def _real_vector(builder: Builder, address: Value) -> Value:
    return load(builder, FLOATS, address)


def _widened_bytes(builder: Builder, address: Value) -> Value:
    return builder.sext(load(builder, emit.vector_of(BYTE, 2 * LANES), address), SHORTS)


def _whole_vector(builder: Builder, address: Value) -> Value:
    return load(builder, INTS, address)


def _loaded(
    builder: Builder,
    read: Callable[[Builder, Value], Value],
    size: int,
    base: Value,
    row: Value,
    column: Value,
) -> list[list[Value]]:
    """A tile of size x size vectors."""
    return [[read(builder, _place(builder, base, row, i, column, j)) for j in range(size)] for i in range(size)]


def _store(builder: Builder, tile: Sequence[Sequence[Value]], base: Value, row: Value, column: Value) -> None:
    for i, line in enumerate(tile):
        for j, value in enumerate(line):
            store(builder, value, _place(builder, base, row, i, column, j))


def _place(builder: Builder, base: Value, row: Value, i: int, column: Value, j: int) -> Value:
    return builder.add(builder.add(base, builder.mul(row, word(i))), builder.mul(column, word(j)))
