"""The inner loops of depthwise convolution: neighbouring outputs summed in registers, a vector of channels wide.

```
    values of a row   v0  v1  v2  v3  v4  v5        each is loaded once, for all outputs that it falls on
    output 0          w0  w1  w2
    output 1              w0  w1  w2                 3 columns, step 1
    output 2                  w0  w1  w2
```

Windows of 3 and 5 columns in steps of 1 and 2 have a loop over rows that keeps a row of weights in registers; all
others have one over places of the window, which loads a weight and a value for each output.

Convolution in groups of four channels has a block of its own: pixels by one vector of channels, of several groups.

    a pixel's vector      a0 a1 a2 a3  b0 b1 b2 b3  ...     groups a, b, ... of four inputs each
    its j-th inputs       aj aj aj aj  bj bj bj bj  ...     one shuffle inside of 128 bits
        x weights         of four outputs each              one fused multiply-add for all groups

So each lane is an output of its own group, and nothing is multiplied by the zeros between groups.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from numba import types

from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.emit import WORD, Builder, Loop, Value, load, offset, operation, store, word
from dryfit_cpu.compiler.register_block import Strides
from dryfit_cpu.compiler.vectors import FLOATS, LANES

# Eight sums of one vector hide the latency of a multiply-add (four cycles, two a cycle); four are what is left of a
# row, and one is for windows that reach into the padding.
OUTPUTS = (8, 4, 1)
"""How many neighbouring outputs a function sums."""
SHARED_COLUMNS, SHARED_STEPS = (3, 5), (1, 2)
"""Windows whose rows of weights stay in registers."""

_Arguments = Sequence[Value]
_Sum = Callable[[Builder, Sequence[Value]], list[Value]]


def _places(builder: Builder, base: Value, distance: Value, count: int) -> list[Value]:
    """Addresses at equal distances: every fourth is computed, three lie beside it by scaled addressing."""
    distance = emit.opaque(builder, distance)
    double = builder.mul(distance, word(2))
    beside = [word(0), distance, double, builder.add(distance, double)]
    places: list[Value] = []
    for place in range(count):
        if place and place % 4 == 0:
            base = emit.opaque(builder, builder.add(base, builder.mul(distance, word(4))))
        places.append(builder.add(base, beside[place % 4]))
    return places


def _finish(builder: Builder, sums: Sequence[Value], arguments: _Arguments) -> None:
    """Store the sums within their limits."""
    to, to_step, low, high = arguments
    limits = [emit.splat(builder, limit, LANES) for limit in (low, high)]
    for value, place in zip(sums, _places(builder, to, to_step, len(sums)), strict=True):
        emit.store(builder, emit.clamped(builder, value, *limits), place)


def _sum_places(outputs: int, builder: Builder, arguments: _Arguments) -> list[Value]:
    """Sum over all places of a window, one after the other."""
    source, step, column_bytes, row_bytes, tap, tap_bytes, tap_row_bytes, rows, columns, first = arguments
    by_row = Loop(builder, rows, [source, tap, *[first] * outputs])
    at_row, tap_row, *sums = by_row.values
    by_column = Loop(builder, columns, [at_row, tap_row, *sums])
    at, at_tap, *sums = by_column.values
    weight = emit.load(builder, FLOATS, at_tap)
    values = [emit.load(builder, FLOATS, place) for place in _places(builder, at, step, outputs)]
    sums = [emit.multiply_add(builder, value, weight, one) for value, one in zip(values, sums, strict=True)]
    after = by_column.finish([builder.add(at, column_bytes), builder.add(at_tap, tap_bytes), *sums])
    done = by_row.finish([builder.add(at_row, row_bytes), builder.add(tap_row, tap_row_bytes), *after[2:]])
    return done[2:]


def _sum_rows(outputs: int, columns: int, step: int, builder: Builder, arguments: _Arguments) -> list[Value]:
    """Sum over the rows of a window of so many neighbouring columns, for outputs `step` columns apart."""
    source, _, column_bytes, row_bytes, tap, tap_bytes, tap_row_bytes, rows, _, first = arguments
    loop = Loop(builder, rows, [source, tap, *[first] * outputs])
    at, at_tap, *sums = loop.values
    weights = [emit.load(builder, FLOATS, place) for place in _places(builder, at_tap, tap_bytes, columns)]
    for column, place in enumerate(_places(builder, at, column_bytes, (outputs - 1) * step + columns)):
        value = emit.load(builder, FLOATS, place)
        for output in range(outputs):
            if 0 <= column - output * step < columns:
                weight = weights[column - output * step]
                sums[output] = emit.multiply_add(builder, value, weight, sums[output])
    return loop.finish([builder.add(at, row_bytes), builder.add(at_tap, tap_row_bytes), *sums])[2:]


def _groups(outputs: int, sum_group: _Sum) -> Callable[..., None]:
    """The body of a function that sums several groups of neighbours, one after the other."""

    def body(builder: Builder, *arguments: Value) -> None:
        groups, source, step, *window = arguments[:10]
        bias, to, to_step, low, high, ahead, output_ahead = arguments[10:]
        first = emit.load(builder, FLOATS, bias)
        many = word(outputs)
        loop = Loop(builder, groups, [source, to])
        at, at_output = loop.values
        for base, distance, between in ((at, ahead, step), (at_output, output_ahead, to_step)):
            for place in _places(builder, builder.add(base, distance), between, outputs):
                emit.prefetch(builder, place, write=base is at_output)
        _finish(builder, sum_group(builder, [at, step, *window, first]), [at_output, to_step, low, high])
        loop.finish([builder.add(at, builder.mul(step, many)), builder.add(at_output, builder.mul(to_step, many))])

    return body


@operation(types.void, *[types.int64] * 15, types.float32, types.float32, types.int64, types.int64)
def sum_windows(builder: Builder, outputs: Value, shared: Value, *arguments: Value) -> None:
    """Sum the windows of groups of `outputs` neighbours, 8, 4 or 1, and store the sums within limits.

    The arguments: how many outputs; columns * 4 + step where values are shared, else 0; how many groups; the first
    value, bytes between the outputs' first values, between columns, between rows; the first weight, bytes between
    weights, between rows of weights; rows, columns; the bias; where the first sum goes, and bytes from sum to sum; the
    limits; how many bytes on inputs and outputs will be needed.
    """
    variants = {64 * count: (f"sum_places_{count}", _groups(count, partial(_sum_places, count))) for count in OUTPUTS}
    for count, columns, step in itertools.product(OUTPUTS[:-1], SHARED_COLUMNS, SHARED_STEPS):
        sum_rows = partial(_sum_rows, count, columns, step)
        variants[64 * count + 4 * columns + step] = f"sum_rows_{count}_{columns}_{step}", _groups(count, sum_rows)
    none, done = builder.append_basic_block("none"), builder.append_basic_block("done")
    switch = builder.switch(builder.add(builder.mul(outputs, word(64)), shared), none)
    for code, (name, body) in variants.items():
        block = builder.append_basic_block(name)
        switch.add_case(word(code), block)
        builder.position_at_end(block)
        emit.outlined(builder, name, arguments, body)
        builder.branch(done)
    builder.position_at_end(none)
    builder.unreachable()
    builder.position_at_end(done)


GROUP_CHANNELS = 4
WEIGHT_ROW_BYTES = 64
"""Of what a place in the window and an input of each group are multiplied with: 16 channels on every machine."""


def grouped_block(pixels: int) -> Any:
    """An operation that sums one block of up to seven neighbouring pixels.

    Its arguments, all integers:
        input: address of the channels of the first pixel's window; input_stride: bytes between pixels.
        places, place_count: address of the byte offsets of the places in a window, and their number.
        weights: address of the block's columns in the first packed row.
        bias: address of what the sums begin at.
        output: where the sums go, FP32, a vector for each pixel.
    """

    @emit.outlined_operation(f"grouped_block_{pixels}", *[types.int64] * 7)
    def block(builder: Builder, *arguments: Value) -> None:
        at, input_stride, places, place_count, weights, bias, output = arguments
        strides = Strides.of(builder, input_stride)
        turn = Loop(builder, place_count, [weights, *[load(builder, FLOATS, bias)] * pixels])
        row, sums = turn.values[0], list(turn.values[1:])
        first = builder.add(at, load(builder, WORD, builder.add(places, builder.shl(turn.index, word(3))), 8))
        values = [load(builder, FLOATS, strides.address(first, pixel)) for pixel in range(pixels)]
        for index in range(GROUP_CHANNELS):
            column = load(builder, FLOATS, offset(builder, row, WEIGHT_ROW_BYTES * index))
            sums = [
                emit.multiply_add(builder, _input_of_groups(builder, value, index), column, total)
                for value, total in zip(values, sums, strict=True)
            ]
        totals = turn.finish([offset(builder, row, WEIGHT_ROW_BYTES * GROUP_CHANNELS), *sums])[1:]
        for pixel, total in enumerate(totals):
            store(builder, total, offset(builder, output, 4 * LANES * pixel))

    return block


def _input_of_groups(builder: Builder, value: Value, index: int) -> Value:
    """The input of this index of each group, in all lanes of the group."""
    lanes = [lane // GROUP_CHANNELS * GROUP_CHANNELS + index for lane in range(LANES)]
    return emit.shuffled(builder, value, value, lanes)
