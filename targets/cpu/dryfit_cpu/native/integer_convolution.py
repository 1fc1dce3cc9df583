"""Convolution and matrix products of INT8 values, with exact sums, over tiles of pixels and panels of channels."""

from __future__ import annotations

from typing import Any

from dryfit_cpu.codes import DOUBLE_PRODUCTS, LEAVES_SUMS, PANEL_WORDS, TILE_WORDS, TILES_OUTSIDE
from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.integer_memory import copy_rows
from dryfit_cpu.compiler.integer_micro_kernel import BLOCK_ROW_BYTES, held_arguments, integer_micro_kernel
from dryfit_cpu.compiler.memory import load_int, stack_memory
from dryfit_cpu.compiler.register_block import PANEL_ROW_BYTES
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.native.requantization import finish_rows

_TILE_BYTES = 8 * TILE_WORDS
_PANEL_BYTES = 8 * PANEL_WORDS

_ROWS = current_tier().rows
_HALF = _ROWS // 2
_CHANNELS = current_tier().block_channels

block_whole = integer_micro_kernel(_ROWS, runs=2)
block_half = integer_micro_kernel(_HALF, runs=1)
block_one = integer_micro_kernel(1, runs=1)


@native
def convolve(
    chunk: int,
    chunks: int,
    input: int,
    weights: int,
    starts: int,
    multipliers: int,
    shifts: int,
    scaling: int,
    real_bias: int,
    output: int,
    residual: int,
    input_stride: int,
    output_stride: int,
    residual_stride: int,
    segments: int,
    segment_count: int,
    segment_length: int,
    tiles: int,
    tile_count: int,
    panels: int,
    panel_count: int,
    order: int,
    flip: int,
    ending: int,
    output_kind: int,
    residual_kind: int,
    rounding: int,
    rounds_sum: int,
    sum_low: float,
    sum_high: float,
    sum_multiplier: float,
    operation: int,
    residual_multiplier: float,
    residual_zero: float,
    low: float,
    high: float,
    rounds_last: int,
    last_multiplier: float,
    last_low: float,
    last_high: float,
    zero_point: float,
) -> None:
    """Exact sums over k of input and weights, requantized, for tiles x panels.

    Tile and panel tables are those of `native/convolution.py`; starts, multipliers and the real bias, whose address is
    0 where there is none, have a word a channel, as the bias has there; shifts, where the scaling has such, a word, or
    two where they are FP64 multipliers. What happens to a sum stands in
    `kernels/integer_definition.py`, step by step, under the same names.
    """
    scratch = stack_memory()
    # A block that its channels do not fill reads and writes pieces of stack, which have room for all of them.
    output_piece, residual_piece = scratch, scratch + _ROWS * _CHANNELS
    words = segment_count * segment_length
    shift_bytes = 2 if scaling == DOUBLE_PRODUCTS else 1
    modes = (rounding, operation, rounds_sum != 0, rounds_last != 0)
    steps = (
        sum_low, sum_high, sum_multiplier, residual_multiplier, low, high, last_multiplier, last_low, last_high,
        residual_zero, zero_point,
    )  # fmt: skip
    read = (
        input, weights, starts, multipliers, real_bias, input_stride, segments, segment_count, segment_length, flip,
    )  # fmt: skip
    for_blocks = held_arguments(*read, ending, scratch, output_stride, residual_stride, *steps)
    for_pieces = held_arguments(*read, ending, scratch, _CHANNELS, _CHANNELS, *steps)
    outer, inner, tile_step, panel_step = panel_count, tile_count, _TILE_BYTES, 0
    if order == TILES_OUTSIDE:
        outer, inner, tile_step, panel_step = tile_count, panel_count, 0, _PANEL_BYTES
    for i in range(outer * chunk // chunks, outer * (chunk + 1) // chunks):
        # What the next turn begins with is asked for, in pieces, while the blocks of this one are computed.
        if order == TILES_OUTSIDE:
            tile, panel = tiles + i * _TILE_BYTES, panels
            ahead = input + load_int(tiles + min(i + 1, tile_count - 1) * _TILE_BYTES)
        else:
            tile, panel = tiles, panels + i * _PANEL_BYTES
            ahead = weights + load_int(panel) + words * PANEL_ROW_BYTES
        for _ in range(inner):
            pixels, channels = load_int(tile + 48), min(load_int(panel + 40), _CHANNELS)
            panel_output = output + load_int(panel + 24)
            output0, output1 = panel_output + load_int(tile + 16), panel_output + load_int(tile + 24)
            residual0, residual1 = 0, 0
            if residual != 0:
                panel_residual = residual + load_int(panel + 32)
                residual0, residual1 = panel_residual + load_int(tile + 32), panel_residual + load_int(tile + 40)
            if channels == _CHANNELS or ending == LEAVES_SUMS:
                _compute_block(pixels, (for_blocks, tile, panel, ahead, output0, output1, residual0, residual1))
            else:
                out1, res0, res1 = output_piece + _HALF * _CHANNELS, 0, 0
                if residual != 0:
                    res0, res1 = residual_piece, residual_piece + _HALF * _CHANNELS
                    copy_rows(res0, _CHANNELS, residual0, residual_stride, min(pixels, _HALF), channels)
                    copy_rows(res1, _CHANNELS, residual1, residual_stride, pixels - _HALF, channels)
                _compute_block(pixels, (for_pieces, tile, panel, ahead, output_piece, out1, res0, res1))
                copy_rows(output0, output_stride, output_piece, _CHANNELS, min(pixels, _HALF), channels)
                copy_rows(output1, output_stride, out1, _CHANNELS, pixels - _HALF, channels)
            if ending == LEAVES_SUMS:
                at_channel, panel_bias = load_int(panel + 8), real_bias
                if real_bias != 0:
                    panel_bias += at_channel
                for run in range(2):
                    places = min(_HALF, pixels - run * _HALF)
                    sums = scratch + run * _HALF * BLOCK_ROW_BYTES
                    to, at = (output1, residual1) if run else (output0, residual0)
                    scales = (multipliers + at_channel, shifts + shift_bytes * at_channel, scaling, panel_bias)
                    rows = (sums, to, output_stride, at, residual_stride, places)
                    finish_rows(rows, scales, channels, output_kind, residual_kind, modes, steps)
            tile, panel, ahead = tile + tile_step, panel + panel_step, ahead + words * 32


@inlined
def _compute_block(pixels: int, arguments: Any) -> None:
    """Compute one block by the micro-kernel of its size."""
    if pixels == _ROWS:
        block_whole(*arguments)
    elif pixels == _HALF:
        block_half(*arguments)
    else:
        block_one(*arguments)
