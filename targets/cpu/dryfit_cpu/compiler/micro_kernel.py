"""The register block: the one inner loop that convolution and matrix products spend their time in.

A block is `rows` pixels by two vectors of output channels, kept in registers from the first to the last of the summed
values k. With AVX512, 14 pixels by 2 x 16 channels:

                      weights[k][32]      one row of the packed panel
                    +--------+--------+
                    | vector | vector |   2 registers
                    +--------+--------+
    input0 -> x[k]  |  sum   |  sum   |
            ... 7   |  ...   |  ...   |   28 registers: sums, which begin at the bias
    input1 -> x[k]  |  sum   |  sum   |
            ... 7   |  ...   |  ...   |
                    +--------+--------+
      1 register:
      x[k] in each lane

The pixels come as two runs, each with a constant distance: so a block can be 14 neighbours, or 7 + 7 pixels of two
image rows, or overlap its neighbour at the end of a row (it then computes the same values again). The values k of a
pixel come as segments, runs that lie together in memory: one for each kernel row where channels are dense, else one
for each tap; an offset table says where they begin. That is convolution without any rearranging of the input.

At the end the residual is added, the sums are clamped, and stored.
"""

from __future__ import annotations

from typing import Any

from numba import types

from dryfit_cpu.codes import PANEL_CHANNELS
from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.emit import FLOAT, WORD, Builder, Loop, Value, load, offset, store, word
from dryfit_cpu.compiler.operations import operation
from dryfit_cpu.compiler.tier import current_tier

LANES = current_tier().lanes
PANEL_ROW_BYTES = 4 * PANEL_CHANNELS
"""A panel is packed the same on every machine; narrower blocks take a part of its columns."""

_VECTORS = 2
_UNROLL = 2
_SUMS = emit.vector_of(FLOAT, LANES)


class _Strides:
    """A distance between pixels as three registers: 1, 3 and 5 times; x86 multiplies an index by 1, 2, 4 or 8."""

    def __init__(self, builder: Builder, once: Value, thrice: Value, five_times: Value) -> None:
        self._builder = builder
        self._registers = {1: once, 3: thrice, 5: five_times}

    @classmethod
    def of(cls, builder: Builder, distance: Value) -> _Strides:
        return cls(builder, distance, builder.mul(distance, word(3)), builder.mul(distance, word(5)))

    def inside_loop(self) -> _Strides:
        """The same strides, defined again where the loop's body begins."""
        return _Strides(self._builder, *(emit.opaque(self._builder, value) for value in self._registers.values()))

    def address(self, base: Value, pixel: int) -> Value:
        """Where a pixel (0 to 6) lies."""
        builder, odd, shift = self._builder, pixel, 0
        while odd and odd % 2 == 0:
            odd, shift = odd // 2, shift + 1
        if not odd:
            return base
        if odd not in self._registers:
            return builder.add(base, builder.mul(self._registers[1], word(pixel)))
        distance = self._registers[odd]
        return builder.add(base, builder.shl(distance, word(shift)) if shift else distance)


def micro_kernel(rows: int, *, runs: int) -> Any:
    """An operation that computes one block of `rows` pixels in so many runs (1 or 2).

    Its arguments, all integers but `low` and `high`:
        input0, input1: addresses of the first pixel of each run; input_stride: bytes between pixels of a run.
        segments: address of `segment_count` byte offsets; segment_length: values in each.
        weights: address of the panel's first row, or of the columns of it that are wanted.
        start0, start1, start_stride: addresses of what the sums begin at: the bias (stride 0), or earlier sums.
        output0, output1, output_stride: addresses of the results.
        residual0, residual1, residual_stride: addresses of what is added; residual0 is 0 for none.
        low, high: limits of the results.
        ahead: address of what is needed next; a cache line of it is asked for in each turn.
    """
    name = f"block_{rows}_{runs}"

    def body(builder: Builder, *arguments: Value) -> None:
        _block(builder, rows // runs, runs, *arguments)

    @operation(types.void, *[types.int64] * 16, types.float32, types.float32, types.int64)
    def block(builder: Builder, *arguments: Value) -> None:
        emit.outlined(builder, name, arguments, body)

    return block


def _block(
    builder: Builder,
    run: int,
    runs: int,
    input0: Value,
    input1: Value,
    input_stride: Value,
    segments: Value,
    segment_count: Value,
    segment_length: Value,
    weights: Value,
    start0: Value,
    start1: Value,
    start_stride: Value,
    output0: Value,
    output1: Value,
    output_stride: Value,
    residual0: Value,
    residual1: Value,
    residual_stride: Value,
    low: Value,
    high: Value,
    ahead: Value,
) -> None:
    """The body of a block: prologue, loops over segments and their values, epilogue."""

    def pixels(base0: Value, base1: Value, strides: _Strides) -> list[Value]:
        return [strides.address(base, pixel) for base in (base0, base1)[:runs] for pixel in range(run)]

    outputs = pixels(output0, output1, _Strides.of(builder, output_stride))
    residuals = pixels(residual0, residual1, _Strides.of(builder, residual_stride))
    for address in outputs:
        for vector in range(_VECTORS):
            emit.prefetch(builder, offset(builder, address, 4 * LANES * vector), write=True)
    with builder.if_then(builder.icmp_signed("!=", residual0, word(0))):
        for address in residuals:
            for vector in range(_VECTORS):
                emit.prefetch(builder, offset(builder, address, 4 * LANES * vector))

    starts = pixels(start0, start1, _Strides.of(builder, start_stride))
    sums = [
        load(builder, _SUMS, offset(builder, address, 4 * LANES * vector))
        for address in starts
        for vector in range(_VECTORS)
    ]
    sums = _sum_segments(
        builder,
        (run, runs),
        (input0, input1),
        input_stride,
        segments,
        segment_count,
        segment_length,
        weights,
        ahead,
        sums,
    )
    limits = emit.splat(builder, low, LANES), emit.splat(builder, high, LANES)
    with builder.if_else(builder.icmp_signed("!=", residual0, word(0))) as (with_residual, without):
        with with_residual:
            _finish(builder, sums, outputs, residuals, limits)
        with without:
            _finish(builder, sums, outputs, None, limits)


def _sum_segments(
    builder: Builder,
    shape: tuple[int, int],
    inputs: tuple[Value, Value],
    input_stride: Value,
    segments: Value,
    segment_count: Value,
    segment_length: Value,
    weights: Value,
    ahead: Value,
    sums: list[Value],
) -> list[Value]:
    """The sums over all values of all segments."""
    run, runs = shape
    strides = _Strides.of(builder, input_stride)

    def step(state: list[Value], unroll: int) -> list[Value]:
        """`unroll` values k of each pixel."""
        *bases, weight, sums = *state[: runs + 1], list(state[runs + 1 :])
        here = strides.inside_loop()
        for k in range(unroll):
            row = offset(builder, weight, PANEL_ROW_BYTES * k)
            columns = [load(builder, _SUMS, offset(builder, row, 4 * LANES * vector)) for vector in range(_VECTORS)]
            pixels = [here.address(base, pixel) for base in bases for pixel in range(run)]
            for pixel, address in enumerate(pixels):
                value = emit.splat(builder, load(builder, FLOAT, offset(builder, address, 4 * k)), LANES)
                for vector in range(_VECTORS):
                    index = pixel * _VECTORS + vector
                    sums[index] = emit.multiply_add(builder, value, columns[vector], sums[index])
        moved = [offset(builder, base, 4 * unroll) for base in bases]
        return [*moved, offset(builder, weight, PANEL_ROW_BYTES * unroll), *sums]

    outer = Loop(builder, segment_count, [weights, ahead, *sums])
    begin = load(builder, WORD, builder.add(segments, builder.shl(outer.index, word(3))), 8)
    bases = [builder.add(base, begin) for base in inputs[:runs]]
    turns = builder.lshr(segment_length, word(_UNROLL.bit_length() - 1))
    inner = Loop(builder, turns, [outer.values[1], *bases, outer.values[0], *outer.values[2:]])
    emit.prefetch(builder, inner.values[0], locality=2)
    next_ahead = offset(builder, inner.values[0], 32 * _UNROLL)
    state = inner.finish([next_ahead, *step(inner.values[1:], _UNROLL)])
    rest = Loop(builder, builder.and_(segment_length, word(_UNROLL - 1)), state[1:])
    after = rest.finish(step(rest.values, 1))
    return outer.finish([after[runs], state[0], *after[runs + 1 :]])[2:]


def _finish(
    builder: Builder,
    sums: list[Value],
    outputs: list[Value],
    residuals: list[Value] | None,
    limits: tuple[Value, Value],
) -> None:
    low, high = limits
    for pixel, output in enumerate(outputs):
        for vector in range(_VECTORS):
            value, at = sums[pixel * _VECTORS + vector], 4 * LANES * vector
            if residuals is not None:
                value = builder.fadd(value, load(builder, _SUMS, offset(builder, residuals[pixel], at)))
            # The limit comes first: where the value is NaN, the comparison fails and the value is taken.
            value = builder.select(builder.fcmp_ordered(">", low, value), low, value)
            value = builder.select(builder.fcmp_ordered("<", high, value), high, value)
            store(builder, value, offset(builder, output, at))
