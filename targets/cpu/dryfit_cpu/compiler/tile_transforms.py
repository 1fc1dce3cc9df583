"""Transforms of small tiles of vectors, `M tile M^T`, as straight code: no loops, no zeros, no products by one.

Rows of a matrix that differ in signs only are computed as a sum and a difference of two parts, and so are columns:

    row 1:  e + o      e: what has the same sign in both        (a, b, c)          a v0 + b (v1 + v2)
    row 2:  e - o      o: what has not                          (a, b, -c) ...     ... and (v1 - v2) where b is -b
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba import types

from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.emit import Builder, Value, load, store, word
from dryfit_cpu.compiler.operations import operation
from dryfit_cpu.compiler.vectors import FLOATS, LANES

Row = Sequence[int]


def input_transform(name: str, matrix: Sequence[Row]) -> Any:
    """An operation that transforms a tile.

    Its arguments: address of the tile's first vector, bytes between its rows and between its columns; the same three
    of the result.
    """

    def body(builder: Builder, *arguments: Value) -> None:
        tile = _loaded(builder, len(matrix[0]), *arguments[:3])
        _store(builder, _on_both_sides(builder, matrix, tile), *arguments[3:])

    @operation(types.void, *[types.int64] * 6)
    def transform(builder: Builder, *arguments: Value) -> None:
        emit.outlined(builder, name, arguments, body)

    return transform


def output_transform(name: str, matrix: Sequence[Row]) -> Any:
    """An operation that transforms a tile, adds a vector to each of the result, and clamps it.

    Its arguments: those of an input transform; address of what is added; lower and upper limit.
    """

    def body(builder: Builder, *arguments: Value) -> None:
        *places, added, low, high = arguments
        tile = _loaded(builder, len(matrix[0]), *places[:3])
        bias = load(builder, FLOATS, added)
        limits = emit.splat(builder, low, LANES), emit.splat(builder, high, LANES)
        lines = _on_both_sides(builder, matrix, tile)
        finished = [[_clamped(builder, builder.fadd(value, bias), *limits) for value in line] for line in lines]
        _store(builder, finished, *places[3:])

    @operation(types.void, *[types.int64] * 7, types.float32, types.float32)
    def transform(builder: Builder, *arguments: Value) -> None:
        emit.outlined(builder, name, arguments, body)

    return transform


def _on_both_sides(builder: Builder, matrix: Sequence[Row], tile: Sequence[Sequence[Value]]) -> list[list[Value]]:
    """`matrix tile matrix^T`."""
    columns = [_product(builder, matrix, column) for column in zip(*tile, strict=True)]
    return [_product(builder, matrix, line) for line in zip(*columns, strict=True)]


def _product(builder: Builder, matrix: Sequence[Row], values: Sequence[Value]) -> list[Value]:
    """`matrix values`."""
    rows, values = _with_joined_columns(builder, matrix, values)
    results: list[Value] = []
    while len(results) < len(rows):
        at = len(results)
        parts = _mirrored(*rows[at : at + 2])
        if parts is None:
            results.append(_combination(builder, rows[at], values))
        else:
            even, odd = (_combination(builder, part, values) for part in parts)
            results += [builder.fadd(even, odd), builder.fsub(even, odd)]
    return results


def _with_joined_columns(
    builder: Builder, matrix: Sequence[Row], values: Sequence[Value]
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
            joined_values += [builder.fadd(first, second), builder.fsub(first, second)]
            taken += 2
    return list(zip(*joined, strict=True)), joined_values


def _mirrored(first: Row, second: Row = ()) -> tuple[Row, Row] | None:
    """What is the same in both, and what has the other sign in the second; None where they differ in more, or less."""
    even = [a if a == b else 0 for a, b in zip(first, second, strict=False)]
    odd = [a if a == -b else 0 for a, b in zip(first, second, strict=False)]
    is_mirrored = len(first) == len(second) and all(abs(a) == abs(b) for a, b in zip(first, second, strict=True))
    return (even, odd) if is_mirrored and any(even) and any(odd) else None


def _combination(builder: Builder, coefficients: Row, values: Sequence[Value]) -> Value:
    """The sum of values times whole numbers; it begins at one that is taken once, where there is one."""
    terms = [(number, value) for number, value in zip(coefficients, values, strict=True) if number]
    (number, total), *others = sorted(terms, key=lambda term: term[0] != 1)
    if number != 1:
        total = builder.fmul(total, emit.constant(FLOATS, number))
    for number, value in others:
        if number == 1:
            total = builder.fadd(total, value)
        elif number == -1:
            total = builder.fsub(total, value)
        else:
            total = emit.multiply_add(builder, value, emit.constant(FLOATS, number), total)
    return total


def _clamped(builder: Builder, value: Value, low: Value, high: Value) -> Value:
    """The value within the limits; NaN stays NaN, because a comparison with it fails."""
    value = builder.select(builder.fcmp_ordered(">", low, value), low, value)
    return builder.select(builder.fcmp_ordered("<", high, value), high, value)


def _loaded(builder: Builder, size: int, base: Value, row: Value, column: Value) -> list[list[Value]]:
    """A tile of size x size vectors."""
    return [[load(builder, FLOATS, _place(builder, base, row, i, column, j)) for j in range(size)] for i in range(size)]


def _store(builder: Builder, tile: Sequence[Sequence[Value]], base: Value, row: Value, column: Value) -> None:
    for i, line in enumerate(tile):
        for j, value in enumerate(line):
            store(builder, value, _place(builder, base, row, i, column, j))


def _place(builder: Builder, base: Value, row: Value, i: int, column: Value, j: int) -> Value:
    return builder.add(builder.add(base, builder.mul(row, word(i))), builder.mul(column, word(j)))
