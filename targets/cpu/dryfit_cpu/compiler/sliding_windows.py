"""Windows that slide along a row of an image, each channel by its own, a block of channels at a time.

An output needs the columns of its window, and a column of the image is in the windows of several outputs. So a turn of
the loop goes on by one output: it reads the next columns, adds each at once to all outputs that need it, and finishes
the output that has seen its last column. With windows of three columns in steps of one:

    columns of the image     a    b    c    d    e
                             |    |    |    |    |
    output 0                 *    *    * -> finished in the turn that reads c
    output 1                      *    *    * -> d
    output 2                           *    *    * -> e

Nothing is copied beforehand and no output is a special case: what lies in the padding is read from a row of zeros, for
rows by pointers that stand still, for columns by a choice of address.

What a column is, and how it is added, is `WindowTerms`: `window_terms.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import attrs
from numba import types

from dryfit.attrs_classes import frozen
from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.emit import Builder, Loop, Value, operation, word

Values = list[Value]

OUTPUTS_AHEAD = 8
"""How far ahead of the output that is computed the memory of outputs is asked for."""


@frozen
class WindowLine:
    """A run of outputs in one row, for a block of channels, as LLVM values.

    Attributes:
        source: the block's first channel in the window's first row and the image's first column; need not exist.
        row_bytes: from one row of the window to the next.
        begin_row, end_row: the rows of the window that lie inside the image.
        column: column of the image under the first column of the first output's window; may be negative.
        columns: of the image.
        pixel_bytes: from one column of the image to the next.
        outside: address of what padding is, for as many channels as a block has.
        panel: address of the block's panel; see `window_variants.py`.
        count: outputs.
        output, output_bytes: where the first one goes, and bytes to the next.
        form: what becomes of sums.
        window_rows, window_columns, step, dilation: the window, and its columns' step and dilation.
    """

    source: Value
    row_bytes: Value
    begin_row: Value
    end_row: Value
    column: Value
    columns: Value
    pixel_bytes: Value
    outside: Value
    panel: Value
    count: Value
    output: Value
    output_bytes: Value
    form: Value
    window_rows: Value
    window_columns: Value
    step: Value
    dilation: Value


LINE_FIELDS = len(attrs.fields(WindowLine))


class WindowTerms(Protocol):
    """What is summed over a window.

    Attributes:
        name: of the code.
        vectors: registers of an output.
        together: rows whose values are read together.
        kept_weights: how many registers of weights may be kept from the start.
        looks_ahead: whether what is needed soon is prefetched.
    """

    name: str
    vectors: int
    together: int
    kept_weights: int
    looks_ahead: bool

    def first(self, builder: Builder, panel: Value) -> Values:
        """What the vectors of an output begin as."""
        ...

    def column(self, builder: Builder, addresses: Sequence[Value]) -> Values:
        """The values of a column, from the addresses of up to `together` rows."""
        ...

    def weights(self, builder: Builder, panel: Value, index: Value) -> Values:
        """The weights of a group of rows in a column, numbered column by column."""
        ...

    def added(self, builder: Builder, sums: Values, column: Values, weights: Values) -> Values:
        """The sums with one more column."""
        ...

    def finish(self, builder: Builder, line: WindowLine, sums: Values, output: Value) -> None:
        """Write an output."""
        ...


def sliding_window(all_terms: Sequence[WindowTerms], windows: Sequence[tuple[int, int, int]]) -> Any:
    """An operation on the number of a variant and the fields of a `WindowLine`.

    There is a variant for each window (rows, columns, step) with each of the terms, in this order, and at last one for
    any window with each of the terms.
    """
    bodies = [
        (f"{terms.name}_{rows}x{columns}_by_{step}", _unrolled(terms, rows, columns, step))
        for rows, columns, step in windows
        for terms in all_terms
    ]
    bodies += [(f"{terms.name}_any", _looped(terms)) for terms in all_terms]

    @operation(types.void, *[types.int64] * (1 + LINE_FIELDS))
    def slide(builder: Builder, number: Value, *fields: Value) -> None:
        after = builder.append_basic_block("after")
        choice = builder.switch(number, after)
        for index, (name, body) in enumerate(bodies):
            block = builder.append_basic_block(name)
            choice.add_case(word(index), block)
            builder.position_at_end(block)
            emit.outlined(builder, name, fields, lambda inner, *own, body=body: body(inner, WindowLine(*own)))
            builder.branch(after)
        builder.position_at_end(after)

    return slide


def is_inside(builder: Builder, line: WindowLine, column: Value) -> Value:
    """Whether a column is one of the image."""
    return builder.icmp_unsigned("<", column, line.columns)


def _unrolled(terms: WindowTerms, rows: int, columns: int, step: int) -> Any:
    """Code for one window: see the drawing above."""
    groups = [range(first, min(rows, first + terms.together)) for first in range(0, rows, terms.together)]
    # A column is read once and added to every output that it belongs to. Output by output, a window of 3 x 3 in steps
    # of one would read each column three times, and loading and widening bytes is most of the work.
    earlier = (columns - 1) // step
    """How many outputs are begun and not finished between turns."""

    def body(builder: Builder, line: WindowLine) -> None:
        read_weights = _PanelWeights(builder, terms, line.panel, columns * len(groups))
        pointers, steps = rows_of(builder, line, rows)
        state = [line.column, *pointers]

        def turn(state: Values, begun: list[Values]) -> tuple[Values, list[Values]]:
            begun = list(begun)
            for shift in range(step):
                inside = is_inside(builder, line, state[0])
                addresses = [builder.select(inside, pointer, line.outside) for pointer in state[1:]]
                for number, group in enumerate(groups):
                    values = terms.column(builder, [addresses[row] for row in group])
                    for age in reversed(range(len(begun))):
                        column = age * step + shift
                        if column < columns:
                            weights = read_weights(column * len(groups) + number)
                            begun[age] = terms.added(builder, begun[age], values, weights)
                moved = [builder.add(pointer, by) for pointer, by in zip(state[1:], steps, strict=True)]
                state = [builder.add(state[0], word(1)), *moved]
            return state, begun

        begun: list[Values] = []
        for _ in range(earlier):
            state, begun = turn(state, [terms.first(builder, line.panel), *begun])
        loop = Loop(builder, line.count, [line.output, *state, *(value for sums in begun for value in sums)])
        output, values = loop.values[0], loop.values[1 + len(state) :]
        begun = [values[first : first + terms.vectors] for first in range(0, len(values), terms.vectors)]
        state, begun = turn(loop.values[1 : 1 + len(state)], [terms.first(builder, line.panel), *begun])
        terms.finish(builder, line, begun.pop(), output)
        if terms.looks_ahead:
            # What the next outputs write, and the row below, which the next line reads first. Processors foresee
            # neither where channels are many: a tenth to a third less time for FP32 on 112 x 112 and 56 x 56, Zen 3.
            ahead = builder.add(output, builder.mul(line.output_bytes, word(OUTPUTS_AHEAD)))
            emit.prefetch(builder, ahead, write=True)
            emit.prefetch(builder, builder.add(state[rows], line.row_bytes), locality=2)
        loop.finish([builder.add(output, line.output_bytes), *state, *(value for sums in begun for value in sums)])

    return body


class _PanelWeights:
    """The weights of a window by number: kept in registers from the start, or read where they are needed."""

    def __init__(self, builder: Builder, terms: WindowTerms, panel: Value, count: int) -> None:
        self._builder, self._terms, self._panel = builder, terms, panel
        # All weights or none: kept in part, each use would have to know where its weight is, and the code is unrolled
        # anyway. What does not fit is read from the panel, in the first-level cache, as an operand of the instruction
        # that multiplies.
        fits = count * terms.vectors <= terms.kept_weights
        self._kept = [terms.weights(builder, panel, word(index)) for index in range(count)] if fits else []

    def __call__(self, index: int) -> Values:
        if self._kept:
            return self._kept[index]
        return self._terms.weights(self._builder, self._panel, word(index))


def rows_of(builder: Builder, line: WindowLine, rows: int) -> tuple[Values, Values]:
    """The pointers to the rows of the first window, and by how much each moves from column to column."""
    pointers, steps = [], []
    first = builder.add(line.source, builder.mul(line.column, line.pixel_bytes))
    for row in range(rows):
        inside = _has_row(builder, line, word(row))
        address = builder.add(first, builder.mul(line.row_bytes, word(row)))
        pointers.append(builder.select(inside, address, line.outside))
        # A row in the padding is a pointer that does not move, on a row of zeros: so no turn of the loop asks for rows.
        steps.append(builder.select(inside, line.pixel_bytes, word(0)))
    return pointers, steps


def _has_row(builder: Builder, line: WindowLine, row: Value) -> Value:
    return builder.and_(builder.icmp_signed(">=", row, line.begin_row), builder.icmp_signed("<", row, line.end_row))


def _looped(terms: WindowTerms) -> Any:
    """Code for all windows: output by output, column by column, group of rows by group."""

    def body(builder: Builder, line: WindowLine) -> None:
        groups = builder.sdiv(builder.add(line.window_rows, word(terms.together - 1)), word(terms.together))
        outputs = Loop(builder, line.count, [line.output, line.column])
        output, first_column = outputs.values
        by_column = Loop(builder, line.window_columns, terms.first(builder, line.panel))
        column = builder.add(first_column, builder.mul(by_column.index, line.dilation))
        inside = is_inside(builder, line, column)
        top = builder.add(line.source, builder.mul(column, line.pixel_bytes))
        by_group = Loop(builder, groups, by_column.values)
        row = builder.mul(by_group.index, word(terms.together))
        addresses = []
        for index in range(terms.together):
            here = builder.add(row, word(index))
            is_there = builder.and_(inside, _has_row(builder, line, here))
            address = builder.add(top, builder.mul(here, line.row_bytes))
            addresses.append(builder.select(is_there, address, line.outside))
        number = builder.add(builder.mul(by_column.index, groups), by_group.index)
        weights = terms.weights(builder, line.panel, number)
        sums = terms.added(builder, by_group.values, terms.column(builder, addresses), weights)
        terms.finish(builder, line, by_column.finish(by_group.finish(sums)), output)
        outputs.finish([builder.add(output, line.output_bytes), builder.add(first_column, line.step)])

    return body


def interleaved(builder: Builder, a: Value, b: Value, *, high: bool) -> Value:
    """Elements of a and b in turns, from the low or the high half of each 16 bytes: one instruction on x86."""
    count = a.type.count
    part = 16 * 8 // a.type.element.width
    half = part // 2
    # Within 16 bytes and not over the whole register: across them a shuffle takes three cycles instead of one, and the
    # order that this leaves is undone by packing, which goes by 16 bytes too.
    order = [
        start + (half if high else 0) + place + source * count
        for start in range(0, count, part)
        for place in range(half)
        for source in range(2)
    ]
    return emit.shuffled(builder, a, b, order)
