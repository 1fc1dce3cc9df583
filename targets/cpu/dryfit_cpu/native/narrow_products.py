"""Matrix products with narrow weights: they are read as they are stored, and decoded in registers or in the cache."""

from __future__ import annotations

from dryfit_cpu.codes import FP4, FP8, INT4, INT8, PANEL_CHANNELS
from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.memory import copy_bytes, load, load_int, store, store_int
from dryfit_cpu.compiler.narrow_numbers import read_narrow
from dryfit_cpu.compiler.register_block import BLOCK_ROW_BYTES, PANEL_ROW_BYTES, UNROLL, held_arguments
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.compiler.vectors import LANES, splat
from dryfit_cpu.compiler.weight_words import panel_decoder, row_kernel
from dryfit_cpu.descriptors import Chunk, Finish, Pixels, Runs, WordTable
from dryfit_cpu.native.convolution import NO_LIMITS, PANEL_BYTES, TILE_BYTES, finish_block, sum_blocks
from dryfit_cpu.native.indices import alike, share

_ROWS = current_tier().rows
_HALF = _ROWS // 2
_CHANNELS = current_tier().block_channels

decode_int4, decode_fp4 = panel_decoder(INT4), panel_decoder(FP4)
decode_int8, decode_fp8 = panel_decoder(INT8), panel_decoder(FP8)
add_int4_row, add_fp4_row = row_kernel(INT4), row_kernel(FP4)
add_int8_row, add_fp8_row = row_kernel(INT8), row_kernel(FP8)


@native
def multiply(
    chunk: Chunk,
    input: Pixels,
    weights: int,
    weight_kind: int,
    scales: int,
    scale_kind: int,
    scale_blocks: int,
    global_scale: float,
    block: int,
    bias: int,
    output: Pixels,
    residual: Pixels,
    segments: Runs,
    segment_bytes: int,
    origin: int,
    tiles: WordTable,
    panels: WordTable,
    by_rows: int,
    tiles_at_once: int,
    decoded_values: int,
    scratch: int,
    scratch_bytes: int,
    finish: Finish,
) -> None:
    """Sum over k of FP32 values and decoded weights, plus bias, residual and activation, for panels x tiles.

    A weight is `code * scale`, rounded to FP32, a scale `number * global_scale`, rounded to FP32. Every output is
    summed in the order of k, beginning at the bias, whatever tiles, panels and chunks are.

    Tiles and panels are those of `convolution.convolve`. Where `by_rows` is set tiles have one pixel, and weights are
    decoded in registers for each. Else `decoded_values` weights k of a panel are decoded to the scratch memory at a
    time, and serve `tiles_at_once` tiles, whose sums wait there too. `origin` is the address of a panel's row of zeros.
    """
    own = scratch + chunk.number * scratch_bytes
    factors = own
    sums = factors + scale_blocks * PANEL_ROW_BYTES
    # Rows of tiles as the register block takes them, whose outputs are the sums.
    rows = sums + tiles_at_once * _ROWS * BLOCK_ROW_BYTES
    decoded = rows + tiles_at_once * PANEL_ROW_BYTES
    # Panels outside, whatever their number: each weight is decoded once for `tiles_at_once` tiles, and a batch of few
    # rows, for which such weights are stored, is little against them.
    for panel_index in range(*share(chunk, panels.rows)):
        panel = panels.address + panel_index * PANEL_BYTES
        words, first_channel = weights + load_int(panel), load_int(panel + 8) // 4
        # Scales of FP16, FP8 or E8M0 are widened once for a panel, to scratch memory: they serve every tile.
        _widen_scales(factors, scales, scale_kind, scale_blocks, first_channel, global_scale)
        for turn in range((tiles.rows + tiles_at_once - 1) // tiles_at_once):
            first_tile = turn * tiles_at_once
            count = min(tiles_at_once, tiles.rows - first_tile)
            for tile in range(count):
                row, to = rows + tile * TILE_BYTES, tile * _ROWS * BLOCK_ROW_BYTES
                copy_bytes(row, tiles.address + (first_tile + tile) * TILE_BYTES, TILE_BYTES)
                store_int(row + 16, to)
                store_int(row + 24, to + _HALF * BLOCK_ROW_BYTES)
                _begin(sums + to, bias + 4 * first_channel, load_int(row + 48))
            for segment in range(segments.runs):
                at = words + segment * segment_bytes
                run = input.address + load_int(segments.address + segment * 8)
                if by_rows:
                    for tile in range(count):
                        x = run + load_int(tiles.address + (first_tile + tile) * TILE_BYTES)
                        to = sums + tile * _ROWS * BLOCK_ROW_BYTES
                        _add_row(weight_kind, x, at, segments.length, block, factors, to)
                else:
                    for part in range((segments.length + decoded_values - 1) // decoded_values):
                        k = part * decoded_values
                        values = min(decoded_values, segments.length - k)
                        _decode(weight_kind, at, k, values, block, factors, decoded)
                        held = held_arguments(
                            run + 4 * k, decoded, 0, sums, 0, input.stride, origin, 1, values, BLOCK_ROW_BYTES, 0,
                            32 * UNROLL, TILE_BYTES, 0, *NO_LIMITS,
                        )  # fmt: skip
                        tile = 0
                        while tile < count:
                            row = rows + tile * TILE_BYTES
                            together = alike(row + 48, TILE_BYTES, count - tile)
                            sum_blocks(load_int(row + 48), _CHANNELS, (together, row, origin, at, held, 0))
                            tile += together
            for tile in range(count):
                row = tiles.address + (first_tile + tile) * TILE_BYTES
                finish_block(sums + tile * _ROWS * BLOCK_ROW_BYTES, row, panel, output, residual, finish)


@inlined
def _widen_scales(factors: int, scales: int, kind: int, blocks: int, first_channel: int, global_scale: float) -> None:
    """FP32 scales of a block's channels, one row for each block of k."""
    size = 4 >> (kind & 3)
    panel, column = first_channel // PANEL_CHANNELS, first_channel % PANEL_CHANNELS
    start = scales + (panel * blocks * PANEL_CHANNELS + column) * size
    for k in range(blocks):
        for channel in range(0, _CHANNELS, LANES):
            x = read_narrow(start + (k * PANEL_CHANNELS + channel) * size, kind, LANES) * splat(global_scale)
            store(factors + k * PANEL_ROW_BYTES + 4 * channel, x)


@inlined
def _begin(sums: int, bias: int, pixels: int) -> None:
    """Let the sums of so many pixels begin at the bias."""
    for pixel in range(pixels):
        for channel in range(0, _CHANNELS, LANES):
            store(sums + pixel * BLOCK_ROW_BYTES + 4 * channel, load(bias + 4 * channel))


@inlined
def _add_row(kind: int, x: int, words: int, count: int, block: int, factors: int, sums: int) -> None:
    if kind == INT4:
        add_int4_row(x, words, count, block, factors, sums)
    elif kind == FP4:
        add_fp4_row(x, words, count, block, factors, sums)
    elif kind == INT8:
        add_int8_row(x, words, count, block, factors, sums)
    else:
        add_fp8_row(x, words, count, block, factors, sums)


@inlined
def _decode(kind: int, words: int, start: int, count: int, block: int, factors: int, decoded: int) -> None:
    """Weights `start` to `start + count` of a block's channels as FP32 rows."""
    units = 8 if kind in (INT4, FP4) else 4
    done = 0
    while done < count:
        k = start + done
        here = min(count - done, block - k % block)
        at, factor = words + k // units * PANEL_ROW_BYTES, factors + k // block * PANEL_ROW_BYTES
        to = decoded + done * PANEL_ROW_BYTES
        if kind == INT4:
            decode_int4(at, here, factor, to)
        elif kind == FP4:
            decode_fp4(at, here, factor, to)
        elif kind == INT8:
            decode_int8(at, here, factor, to)
        else:
            decode_fp8(at, here, factor, to)
        done += here
