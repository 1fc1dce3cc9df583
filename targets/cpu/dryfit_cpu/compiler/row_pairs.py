"""Depthwise windows of two rows of outputs at once, for machines with 16 registers of eight lanes.

Nine weights of two vectors do not fit beside the sums there. Row by row each multiply-add reads its weight, so that the
loads take longer than the products: 24 of them for 18. Two rows of outputs share each weight, and most values:

    rows of the image    outputs 0    outputs 1
    a                    w0
    b                    w1           w0
    c                    w2           w1
    d                                 w2

Every output is summed in the order in which a row by itself is.
"""

from __future__ import annotations

from numba import types

from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.emit import FLOAT, Builder, Loop, Value, load, offset, operation, store, word
from dryfit_cpu.compiler.sliding_windows import LINE_FIELDS, OUTPUTS_AHEAD, Values, WindowLine, is_inside, rows_of
from dryfit_cpu.compiler.vectors import FLOATS, LANES
from dryfit_cpu.compiler.window_variants import HIGH, LOW, PAIR_ROWS, PAIRED_WIDTH, PAIRED_WINDOWS, REAL_SUMS, STARTS


class _Pair:
    """Code for one window, whose rows have the step of its columns, and for blocks of `width` channels."""

    def __init__(self, rows: int, columns: int, step: int, width: int) -> None:
        self.name = f"channel_sums_{width}_{rows}x{columns}_by_{step}_in_pairs"
        self._rows, self._columns, self._step, self._width = rows, columns, step, width
        self._vectors = width // LANES

    def __call__(self, builder: Builder, *fields: Value) -> None:
        """Sum the outputs of a `WindowLine`, and those `fields[-1]` bytes behind them."""
        line, beside = WindowLine(*fields[:-1]), fields[-1]
        reads = self._rows + self._step
        pointers, steps = rows_of(builder, line, reads)
        state, begun = [line.column, *pointers], list[Values]()
        for _ in range((self._columns - 1) // self._step):
            state, begun = self._turn(builder, line, steps, state, [self._bias(builder, line), *begun])
        loop = Loop(builder, line.count, [line.output, *state, *(total for sums in begun for total in sums)])
        output, state, sums = loop.values[0], loop.values[1 : 1 + len(state)], loop.values[1 + len(state) :]
        size = PAIR_ROWS * self._vectors
        begun = [sums[first : first + size] for first in range(0, len(sums), size)]
        state, begun = self._turn(builder, line, steps, state, [self._bias(builder, line), *begun])
        outputs = [output, builder.add(output, beside)]
        self._finish(builder, line, begun.pop(), outputs)
        for to in outputs:
            emit.prefetch(builder, builder.add(to, builder.mul(line.output_bytes, word(OUTPUTS_AHEAD))), write=True)
        below = state[reads]
        for _ in range(self._step):
            below = builder.add(below, line.row_bytes)
            emit.prefetch(builder, below, locality=2)
        after = [builder.add(output, line.output_bytes), *state, *(total for sums in begun for total in sums)]
        loop.finish(after)

    def _turn(
        self, builder: Builder, line: WindowLine, steps: Values, state: Values, begun: list[Values]
    ) -> tuple[Values, list[Values]]:
        """Add the next columns to all outputs that need them: of each age a sum by vector and row of outputs."""
        begun = [list(sums) for sums in begun]
        for shift in range(self._step):
            inside = is_inside(builder, line, state[0])
            places = [builder.select(inside, pointer, line.outside) for pointer in state[1:]]
            # Vector by vector, so that beside twelve sums there are only a weight and the values of a few rows.
            for vector in range(self._vectors):
                self._add_column(builder, line, places, begun, shift, vector)
            moved = [builder.add(pointer, by) for pointer, by in zip(state[1:], steps, strict=True)]
            state = [builder.add(state[0], word(1)), *moved]
        return state, begun

    def _add_column(
        self, builder: Builder, line: WindowLine, places: Values, begun: list[Values], shift: int, vector: int
    ) -> None:
        values: dict[int, Value] = {}
        for row in range(self._rows):
            for below in (row, row + self._step):
                if below not in values:
                    values[below] = self._vector(builder, places[below], vector)
            for age in reversed(range(len(begun))):
                column = age * self._step + shift
                if column < self._columns:
                    # Behind the bias.
                    index = 1 + column * self._rows + row
                    place = offset(builder, line.panel, STARTS + 4 * self._width * index)
                    weight = self._vector(builder, place, vector)
                    for output in range(PAIR_ROWS):
                        number, value = vector * PAIR_ROWS + output, values[row + output * self._step]
                        begun[age][number] = emit.multiply_add(builder, value, weight, begun[age][number])

    def _bias(self, builder: Builder, line: WindowLine) -> Values:
        start = offset(builder, line.panel, STARTS)
        vectors = [self._vector(builder, start, vector) for vector in range(self._vectors)]
        return [value for value in vectors for _ in range(PAIR_ROWS)]

    def _finish(self, builder: Builder, line: WindowLine, sums: Values, outputs: Values) -> None:
        limits = [
            emit.splat(builder, load(builder, FLOAT, offset(builder, line.panel, place), 4), LANES)
            for place in (LOW, HIGH)
        ]
        for place, total in enumerate(sums):
            to = offset(builder, outputs[place % PAIR_ROWS], 4 * LANES * (place // PAIR_ROWS))
            store(builder, emit.clamped(builder, total, *limits), to)

    def _vector(self, builder: Builder, address: Value, vector: int) -> Value:
        return load(builder, FLOATS, offset(builder, address, 4 * LANES * vector), 4)


_PAIRS = [_Pair(*window, PAIRED_WIDTH) for window in PAIRED_WINDOWS]


@operation(types.void, *[types.int64] * (2 + LINE_FIELDS))
def sum_window_pairs(builder: Builder, number: Value, *fields: Value) -> None:
    """Sum two rows of outputs by the variant of a number below `PAIRED_NUMBERS` for blocks of `PAIRED_WIDTH`.

    The fields are those of a `WindowLine` of the first row, whose window's rows inside the image are those of both; and
    the bytes from the first row of outputs to the second.
    """
    after = builder.append_basic_block("after")
    choice = builder.switch(number, after)
    for pair, window in zip(_PAIRS, PAIRED_WINDOWS, strict=True):
        block = builder.append_basic_block(pair.name)
        choice.add_case(word(REAL_SUMS.number(window[:2], window[2], 1, PAIRED_WIDTH)), block)
        builder.position_at_end(block)
        emit.outlined(builder, pair.name, fields, pair)
        builder.branch(after)
    builder.position_at_end(after)
