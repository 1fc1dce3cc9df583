"""Convolution in groups of four channels: a block of pixels by one vector of channels, which holds several groups.

    a pixel's vector      a0 a1 a2 a3  b0 b1 b2 b3  ...     groups a, b, ... of four inputs each
    its j-th inputs       aj aj aj aj  bj bj bj bj  ...     one shuffle inside of 128 bits
        x weights         of four outputs each              one fused multiply-add for all groups

So each lane is an output of its own group, and nothing is multiplied by the zeros between groups.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.emit import FLOAT, INT, WORD, Builder, Loop, Value, load, offset, store, word
from dryfit_cpu.compiler.operations import operation
from dryfit_cpu.compiler.register_block import LANES, Strides

GROUP_CHANNELS = 4
WEIGHT_ROW_BYTES = 64
"""Of what a place in the window and an input of each group are multiplied with: 16 channels on every machine."""

_FLOATS = emit.vector_of(FLOAT, LANES)


def grouped_block(pixels: int) -> Any:
    """An operation that sums one block of up to seven neighbouring pixels.

    Its arguments, all integers:
        input: address of the channels of the first pixel's window; input_stride: bytes between pixels.
        places, place_count: address of the byte offsets of the places in a window, and their number.
        weights: address of the block's columns in the first packed row.
        bias: address of what the sums begin at.
        output: where the sums go, FP32, a vector for each pixel.
    """

    def body(builder: Builder, *arguments: Value) -> None:
        _block(builder, pixels, *arguments)

    @operation(types.void, *[types.int64] * 7)
    def block(builder: Builder, *arguments: Value) -> None:
        emit.outlined(builder, f"grouped_block_{pixels}", arguments, body)

    return block


def _block(
    builder: Builder,
    pixels: int,
    input: Value,
    input_stride: Value,
    places: Value,
    place_count: Value,
    weights: Value,
    bias: Value,
    output: Value,
) -> None:
    strides = Strides.of(builder, input_stride)
    turn = Loop(builder, place_count, [weights, *[load(builder, _FLOATS, bias)] * pixels])
    row, sums = turn.values[0], list(turn.values[1:])
    first = builder.add(input, load(builder, WORD, builder.add(places, builder.shl(turn.index, word(3))), 8))
    values = [load(builder, _FLOATS, strides.address(first, pixel)) for pixel in range(pixels)]
    for index in range(GROUP_CHANNELS):
        column = load(builder, _FLOATS, offset(builder, row, WEIGHT_ROW_BYTES * index))
        sums = [
            emit.multiply_add(builder, _input_of_groups(builder, value, index), column, total)
            for value, total in zip(values, sums, strict=True)
        ]
    totals = turn.finish([offset(builder, row, WEIGHT_ROW_BYTES * GROUP_CHANNELS), *sums])[1:]
    for pixel, total in enumerate(totals):
        store(builder, total, offset(builder, output, 4 * LANES * pixel))


def _input_of_groups(builder: Builder, value: Value, index: int) -> Value:
    """The input of this index of each group, in all lanes of the group."""
    lanes = [lane // GROUP_CHANNELS * GROUP_CHANNELS + index for lane in range(LANES)]
    return builder.shuffle_vector(value, value, ir.Constant(emit.vector_of(INT, LANES), lanes))
