"""The inner loops of convolution by channels: depthwise in FP32, and in groups of four channels.

Depthwise is a window that slides along a row, a block of one or two vectors of channels at a time: the loops are those
of `sliding_windows.py`, and what is summed in them stands here. The panel that a block reads is

    limits    64 bytes, of which two FP32 numbers limit the results
    bias      FP32, 4 bytes a channel
    weights   FP32, [window columns, window rows] of 4 bytes a channel

Convolution in groups of four channels has a block of its own: pixels by one vector of channels, of several groups.

    a pixel's vector      a0 a1 a2 a3  b0 b1 b2 b3  ...     groups a, b, ... of four inputs each
    its j-th inputs       aj aj aj aj  bj bj bj bj  ...     one shuffle inside of 128 bits
        x weights         of four outputs each              one fused multiply-add for all groups

So each lane is an output of its own group, and nothing is multiplied by the zeros between groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba import types

from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.emit import FLOAT, WORD, Builder, Loop, Value, load, offset, store, word
from dryfit_cpu.compiler.register_block import Strides
from dryfit_cpu.compiler.sliding_windows import Values, WindowLine, sliding_window
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.compiler.vectors import FLOATS, LANES
from dryfit_cpu.compiler.window_variants import HIGH, LOW, REAL_SUMS, STARTS


class ChannelSums:
    """Sums of FP32 products, within limits.

    Blocks of `width` channels.
    """

    together = 1
    looks_ahead = True

    def __init__(self, width: int) -> None:
        self.name = f"channel_sums_{width}"
        self.width, self.vectors = width, width // LANES
        # Nine weights of two vectors, beside six sums, fit 32 registers. Of 16 they would leave no room for sums, and
        # are read as operands of the multiply-add, from the first-level cache.
        self.kept_weights = 18 if current_tier().lanes == 16 else 0

    def first(self, builder: Builder, panel: Value) -> Values:
        """The bias."""
        return self._vectors(builder, offset(builder, panel, STARTS))

    def column(self, builder: Builder, addresses: Sequence[Value]) -> Values:
        """The values of a row."""
        return self._vectors(builder, addresses[0])

    def weights(self, builder: Builder, panel: Value, index: Value) -> Values:
        """Those of a place in the window."""
        place = builder.add(panel, builder.mul(index, word(4 * self.width)))
        return self._vectors(builder, offset(builder, place, STARTS + 4 * self.width))

    def added(self, builder: Builder, sums: Values, column: Values, weights: Values) -> Values:
        """One multiply-add a register."""
        return [emit.multiply_add(builder, *terms) for terms in zip(column, weights, sums, strict=True)]

    def finish(self, builder: Builder, line: WindowLine, sums: Values, output: Value) -> None:
        """Write the sums within the limits."""
        limits = [
            emit.splat(builder, load(builder, FLOAT, offset(builder, line.panel, place), 4), LANES)
            for place in (LOW, HIGH)
        ]
        for vector, total in enumerate(sums):
            store(builder, emit.clamped(builder, total, *limits), offset(builder, output, 4 * LANES * vector))

    def _vectors(self, builder: Builder, address: Value) -> Values:
        return [load(builder, FLOATS, offset(builder, address, 4 * LANES * v), 4) for v in range(self.vectors)]


sum_windows = sliding_window([ChannelSums(width) for width in REAL_SUMS.widths], REAL_SUMS.windows)
"""An operation: the number of a variant of `REAL_SUMS`, then the fields of a `WindowLine`; its form is unused."""


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
