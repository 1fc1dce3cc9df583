"""Convolution and matrix products as an implicit matrix product over tiles of pixels and panels of output channels."""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu.codes import PANEL_WORDS, TILE_WORDS, TILES_OUTSIDE
from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.memory import load, load_int, read, stack_memory, write
from dryfit_cpu.compiler.micro_kernel import micro_kernel
from dryfit_cpu.compiler.register_block import PANEL_ROW_BYTES
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.compiler.vectors import LANES
from dryfit_cpu.native.functions import activate

TILE_BYTES = 8 * TILE_WORDS
"""A row of the tile table: byte offsets of the two runs in input, output and residual, and the number of pixels."""
PANEL_BYTES = 8 * PANEL_WORDS
"""A row of the panel table: byte offsets in weights, bias, input, output and residual, and the number of channels."""

_ROWS = current_tier().rows
_HALF = _ROWS // 2
_CHANNELS = current_tier().block_channels
_BLOCK_ROW_BYTES = 4 * _CHANNELS

_INFINITY: Any = float32(float("inf"))

block_whole = micro_kernel(_ROWS, runs=2)
block_half = micro_kernel(_HALF, runs=1)
block_one = micro_kernel(1, runs=1)
narrow_whole = micro_kernel(_ROWS, runs=2, is_narrow=True)
narrow_half = micro_kernel(_HALF, runs=1, is_narrow=True)
narrow_one = micro_kernel(1, runs=1, is_narrow=True)


@native
def convolve(
    chunk: int,
    chunks: int,
    input: int,
    weights: int,
    bias: int,
    output: int,
    residual: int,
    input_stride: int,
    output_stride: int,
    residual_stride: int,
    segments: int,
    segment_count: int,
    segment_length: int,
    k_blocks: int,
    tiles: int,
    tile_count: int,
    panels: int,
    panel_count: int,
    order: int,
    inner_parts: int,
    low: float,
    high: float,
    finishes: int,
    output_kind: int,
    residual_kind: int,
    inner_activation: int,
    inner_alpha: float,
    inner_beta: float,
    activation: int,
    alpha: float,
    beta: float,
) -> None:
    """Sum over k of input and weights, plus bias, residual and activation, for tiles x panels.

    Every output is summed in the order of k, whatever the tiles, panels, blocks of k and chunks are. With more than one
    block of k the sums wait in the output, which is FP32 then. Where `finishes` is set the block goes through a piece
    of stack, and `finish_pixel` does what follows the sum. A panel of no more channels than a vector has lanes is
    computed by narrow blocks; any other is as wide as a register block.

    The chunks cut the outer loop, and the inner one into `inner_parts`, so that few rounds of the outer one can be
    shared evenly.
    """
    scratch = stack_memory()
    outer, inner = (tile_count, panel_count) if order == TILES_OUTSIDE else (panel_count, tile_count)
    parts = min(inner_parts, chunks)
    part, inner_part, outer_parts = chunk // parts, chunk % parts, chunks // parts
    rounds = 1 if order == TILES_OUTSIDE else k_blocks
    outer_start, outer_stop = outer * part // outer_parts * rounds, outer * (part + 1) // outer_parts * rounds
    inner_start, inner_stop = inner * inner_part // parts, inner * (inner_part + 1) // parts
    for i in range(outer_start, outer_stop):
        for j in range(inner_start, inner_stop):
            k_block = 0
            tile_index, panel_index = i, j
            if order != TILES_OUTSIDE:
                tile_index = j
                panel_index = i // k_blocks
                k_block = i - panel_index * k_blocks
            tile, panel = tiles + tile_index * TILE_BYTES, panels + panel_index * PANEL_BYTES
            panel_weights = weights + load_int(panel) + k_block * segment_count * segment_length * PANEL_ROW_BYTES
            panel_bias = bias + load_int(panel + 8)
            panel_input = input + load_int(panel + 16)
            panel_output, channels = output + load_int(panel + 24), load_int(panel + 40)
            input0, input1 = panel_input + load_int(tile), panel_input + load_int(tile + 8)
            output0, output1 = panel_output + load_int(tile + 16), panel_output + load_int(tile + 24)
            pixels = load_int(tile + 48)
            # An address is 0 where nothing is added.
            panel_residual = residual + load_int(panel + 32)
            residual0 = panel_residual + load_int(tile + 32) if residual else 0
            residual1 = panel_residual + load_int(tile + 40) if residual else 0
            # What is needed next is asked for while this block is computed.
            if order == TILES_OUTSIDE:
                next_tile = tiles + min(tile_index + 1, tile_count - 1) * TILE_BYTES
                ahead = panel_input + load_int(next_tile) + panel_index * segment_count * segment_length * 32
            else:
                span = segment_count * segment_length
                ahead = panel_weights + span * PANEL_ROW_BYTES + tile_index * span * 32

            bypasses = finishes != 0
            is_narrow = channels <= LANES
            out0, out1, out_stride = output0, output1, output_stride
            res0, res1, block_low, block_high = residual0, residual1, low, high
            if bypasses:
                out0, out1, out_stride = scratch, scratch + _HALF * _BLOCK_ROW_BYTES, _BLOCK_ROW_BYTES
                res0, res1, block_low, block_high = 0, 0, -_INFINITY, _INFINITY
            start0, start1, start_stride = panel_bias, panel_bias, 0
            if k_block > 0:
                start0, start1, start_stride = out0, out1, out_stride
            if k_block < k_blocks - 1:
                res0, res1, block_low, block_high = 0, 0, -_INFINITY, _INFINITY

            segment_table = segments + k_block * segment_count * 8
            sum_block(
                pixels,
                (
                    input0, input1, input_stride, segment_table, segment_count, segment_length, panel_weights,
                    start0, start1, start_stride, out0, out1, out_stride, res0, res1, residual_stride,
                    block_low, block_high, ahead, channels,
                ),
                is_narrow,
            )  # fmt: skip
            if bypasses:
                for pixel in range(pixels):
                    run, place = pixel // _HALF, pixel % _HALF
                    to = (output1 if run else output0) + place * output_stride
                    add = (residual1 if run else residual0) + place * residual_stride
                    finish_pixel(
                        scratch + pixel * _BLOCK_ROW_BYTES, to, add if residual else 0, min(channels, _CHANNELS),
                        output_kind, residual_kind, (inner_activation, inner_alpha, inner_beta),
                        (activation, alpha, beta),
                    )  # fmt: skip


@inlined
def sum_block(pixels: int, arguments: Any, is_narrow: bool) -> None:
    """Compute one block by the micro-kernel of its size."""
    if is_narrow:
        if pixels == _ROWS:
            narrow_whole(*arguments)
        elif pixels == _HALF:
            narrow_half(*arguments)
        else:
            narrow_one(*arguments)
    elif pixels == _ROWS:
        block_whole(*arguments)
    elif pixels == _HALF:
        block_half(*arguments)
    else:
        block_one(*arguments)


@inlined
def finish_pixel(
    sums: int,
    output: int,
    residual: int,
    channels: int,
    output_kind: int,
    residual_kind: int,
    inner: tuple[int, float, float],
    outer: tuple[int, float, float],
) -> None:
    """One pixel's sums to its outputs: inner activation, residual, activation, rounding to the output's type."""
    for channel in range(0, channels, LANES):
        count = channels - channel
        x = activate(inner[0], load(sums + channel * 4), inner[1], inner[2])
        if residual != 0:
            size = 4 >> (residual_kind & 3)
            x = x + read(residual + channel * size, size, residual_kind, count)
        size = 4 >> (output_kind & 3)
        write(output + channel * size, size, output_kind, activate(outer[0], x, outer[1], outer[2]), count)
