"""Convolution and matrix products as an implicit matrix product over tiles of pixels and panels of output channels.

And deconvolution's second half: each output collects what the inputs' windows lay on it.
"""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu.codes import FP32, PANEL_WORDS, TILE_WORDS, TILES_OUTSIDE
from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.line_copies import CACHE_LINE
from dryfit_cpu.compiler.memory import load, load_int, read, stack_memory, write
from dryfit_cpu.compiler.register_block import BLOCK_ROW_BYTES, PANEL_ROW_BYTES, UNROLL, micro_kernel
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.compiler.vectors import LANES
from dryfit_cpu.descriptors import Chunk, Finish, Function, Image, Pixels, Runs, WindowAxis, WordTable
from dryfit_cpu.native.functions import activate, activate_sums
from dryfit_cpu.native.indices import pixel, share

TILE_BYTES = 8 * TILE_WORDS
"""A row of the tile table: byte offsets of the two runs in input, output and residual, and the number of pixels."""
PANEL_BYTES = 8 * PANEL_WORDS
"""A row of the panel table: byte offsets in weights, bias, input, output and residual, and the number of channels."""

_ROWS = current_tier().rows
_HALF = _ROWS // 2
_CHANNELS, _WIDE = current_tier().block_channels, current_tier().wide_channels

_ASKING = 16
"""The last turns of an inner loop, in which what is needed next is asked for: what comes earlier may be pushed out."""

_INFINITY: Any = float32(float("inf"))
_NOTHING: Any = float32(0.0)
NO_LIMITS = (-_INFINITY, _INFINITY, _NOTHING, _NOTHING)
"""How a block of sums ends that are not finished: low, high, slope, shift."""

# One compiled function serves every layer: shapes are in the tables that kernels make, and only the number of pixels in
# a block, which decides how many registers it has, is known when the code is made.
block_whole = micro_kernel(_ROWS, runs=2)
block_half = micro_kernel(_HALF, runs=1)
block_one = micro_kernel(1, runs=1)
narrow_whole = micro_kernel(_ROWS, runs=2, vectors=1)
narrow_half = micro_kernel(_HALF, runs=1, vectors=1)
narrow_one = micro_kernel(1, runs=1, vectors=1)
wide_one = micro_kernel(1, runs=1, vectors=_WIDE // LANES) if _WIDE > _CHANNELS else block_one


@native
def convolve(
    chunk: Chunk,
    input: Pixels,
    weights: int,
    bias: int,
    output: Pixels,
    residual: Pixels,
    segments: Runs,
    k_blocks: int,
    continues: int,
    tiles: WordTable,
    panels: WordTable,
    order: int,
    inner_parts: int,
    finish: Finish,
) -> None:
    """Sum over k of input and weights, plus bias, residual and activation, for tiles x panels.

    Every output is summed in the order of k, whatever the tiles, panels, blocks of k and chunks are. With more than one
    block of k the sums wait in the output, which is FP32 then; sums that continue begin there too. Where the finish
    bypasses the output, the block goes through a piece of stack, and `finish_pixel` does what follows the sum. A panel
    of no more channels than a vector has lanes is computed by narrow blocks; any other is as wide as a register block.

    The chunks cut the outer loop, and the inner one into `inner_parts`, so that few rounds of the outer one can be
    shared evenly.
    """
    scratch = stack_memory()
    # The larger operand is gone through once, outside: the other one is read again for each piece of it, and stays in
    # the second-level cache meanwhile.
    outer, inner = (tiles.rows, panels.rows) if order == TILES_OUTSIDE else (panels.rows, tiles.rows)
    parts = min(inner_parts, chunk.chunks)
    part, inner_part, outer_parts = chunk.number // parts, chunk.number % parts, chunk.chunks // parts
    # A panel that does not fit that cache is cut along k, and all tiles go by each block of it: 22 to 29 % less time
    # with 512 channels and a 3 x 3 window. The sums so far are stored and loaded again, which is exact in FP32.
    rounds = 1 if order == TILES_OUTSIDE else k_blocks
    outer_start, outer_stop = outer * part // outer_parts * rounds, outer * (part + 1) // outer_parts * rounds
    inner_start, inner_stop = inner * inner_part // parts, inner * (inner_part + 1) // parts
    # What does not change in the inner loop is found outside of it: with few words of k a block takes no longer than
    # finding where it lies.
    span = segments.runs * segments.length
    tile_step, panel_step = (0, PANEL_BYTES) if order == TILES_OUTSIDE else (TILE_BYTES, 0)
    has_residual, ahead_turns = residual.address != 0, segments.runs * (segments.length // UNROLL)
    for i in range(outer_start, outer_stop):
        tile_index, panel_index, k_block = i, inner_start, 0
        if order != TILES_OUTSIDE:
            tile_index, panel_index = inner_start, i // k_blocks
            k_block = i - panel_index * k_blocks
        tile, panel = tiles.address + tile_index * TILE_BYTES, panels.address + panel_index * PANEL_BYTES
        segment_table, block_weights = segments.address + k_block * segments.runs * 8, k_block * span * PANEL_ROW_BYTES
        ahead, ahead_step = load_int(tiles.address + min(i + 1, tiles.rows - 1) * TILE_BYTES), _ROWS * 4 * UNROLL
        if order != TILES_OUTSIDE:
            ahead, ahead_step = _next_panel(weights, load_int(panel), span) + block_weights, BLOCK_ROW_BYTES * UNROLL
        # What is needed next is asked for while this is computed, as evenly as the inner loop goes on: memory gives it
        # slowly, and lines that come too early push out others. The processor foresees runs, but not where the next one
        # begins: a tenth less time for ResNet-50 than without.
        ahead_step = min(CACHE_LINE, ahead_step // max(1, min(_ASKING, inner_stop - inner_start)) + 1)
        for turn in range(inner_start, inner_stop):
            panel_weights, panel_bias = weights + load_int(panel) + block_weights, bias + load_int(panel + 8)
            panel_input = input.address + load_int(panel + 16)
            panel_output, channels = output.address + load_int(panel + 24), load_int(panel + 40)
            input0, input1 = panel_input + load_int(tile), panel_input + load_int(tile + 8)
            output0, output1 = panel_output + load_int(tile + 16), panel_output + load_int(tile + 24)
            pixels = load_int(tile + 48)
            # An address is 0 where nothing is added.
            panel_residual = residual.address + load_int(panel + 32)
            residual0 = panel_residual + load_int(tile + 32) if has_residual else 0
            residual1 = panel_residual + load_int(tile + 40) if has_residual else 0
            next_ahead = ahead + panel_input if order == TILES_OUTSIDE else ahead
            asked = ahead_turns if inner_stop - turn <= _ASKING else 0
            tile, panel, ahead = tile + tile_step, panel + panel_step, ahead + asked * ahead_step

            out0, out1, out_stride, res0, res1 = output0, output1, output.stride, residual0, residual1
            limits = (finish.low, finish.high, finish.slope, finish.shift)
            if finish.bypasses:
                out0, out1, out_stride = scratch, scratch + _HALF * BLOCK_ROW_BYTES, BLOCK_ROW_BYTES
                res0, res1 = 0, 0
            start0, start1, start_stride = panel_bias, panel_bias, 0
            if k_block > 0 or continues:
                start0, start1, start_stride = out0, out1, out_stride
            # Limits and residual are for the whole sum: no block of k but the last has them.
            if k_block < k_blocks - 1:
                res0, res1, limits = 0, 0, NO_LIMITS

            sum_block(
                pixels,
                (
                    input0, input1, input.stride, segment_table, segments.runs, segments.length, panel_weights,
                    start0, start1, start_stride, out0, out1, out_stride, res0, res1, residual.stride,
                    *limits, next_ahead, ahead_step, channels,
                ),
                channels,
            )  # fmt: skip
            if finish.bypasses:
                finish_sums(finish, has_residual, scratch, max(pixels * _CHANNELS, channels))
                for pixel in range(pixels):
                    run, place = pixel // _HALF, pixel % _HALF
                    to = (output1 if run else output0) + place * output.stride
                    add = (residual1 if run else residual0) + place * residual.stride
                    finish_pixel(
                        scratch + pixel * BLOCK_ROW_BYTES, to, add if has_residual else 0,
                        channels, output.kind, residual.kind, finish,
                    )  # fmt: skip


@inlined
def _next_panel(weights: int, panel: int, span: int) -> int:
    """Where in the next packed panel the share of it begins that a block asks for, by its own place in weights."""
    return weights + panel + span * PANEL_ROW_BYTES + (span - 1) * (panel % PANEL_ROW_BYTES)


@inlined
def sum_block(pixels: int, arguments: Any, channels: int) -> None:
    """Compute one block by the micro-kernel of its size.

    A narrow block is for the last channels: one vector, whose missing lanes are masked, costs half of a block that
    would compute channels that there are not. A wide one is of one pixel.
    """
    if channels <= LANES:
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
    elif channels > _CHANNELS:
        wide_one(*arguments)
    else:
        block_one(*arguments)


@inlined
def finish_sums(finish: Finish, has_residual: bool, sums: int, count: int) -> None:
    """Apply to so many sums, which lie together, what comes before the residual; without one all that follows."""
    activate_sums(finish.inner if has_residual else finish.outer, sums, count)


@inlined
def finish_pixel(
    sums: int, output: int, residual: int, channels: int, output_kind: int, residual_kind: int, finish: Finish
) -> None:
    """One pixel's sums behind `finish_sums` to its outputs: residual, activation, rounding to the output's type."""
    for channel in range(0, channels, LANES):
        count = channels - channel
        x = load(sums + channel * 4)
        if residual == 0 and output_kind == FP32:
            write(output + channel * 4, 4, FP32, x, count)
            continue
        if residual != 0:
            size = 4 >> (residual_kind & 3)
            x = activate(finish.outer, x + read(residual + channel * size, size, residual_kind, count))
        size = 4 >> (output_kind & 3)
        write(output + channel * size, size, output_kind, x, count)


_BEYOND = 1 << 40


@native
def collect(
    chunk: Chunk,
    products: int,
    pixel_bytes: int,
    tap_bytes: int,
    weights: int,
    weight_bytes: int,
    source_rows: int,
    source_columns: int,
    bias: int,
    output: Image,
    window_rows: WindowAxis,
    window_columns: WindowAxis,
    row_hop: int,
    column_hop: int,
    function: Function,
) -> None:
    """Sum the products `[image, row, column, window row, window column, channel]` that fall on each output.

    A pixel has `pixel_bytes` of them, a place in the window `tap_bytes`. With `weights`, FP32 rows of `weight_bytes`
    for each place, what is given are the factors: each is multiplied when it is added. They are added in the order of
    the window, whoever computes them. Of the places in a window only every `hop`-th one falls on the same output.
    """
    # Each output collects, instead of each input adding to what it falls on: no two threads then write the same output,
    # none is read back, and the order of the sum is that of the window.
    rows_back = window_rows.dilation * row_hop // window_rows.step
    columns_back = window_columns.dilation * column_hop // window_columns.step
    column_step = window_columns.step
    blocks = (output.channels + LANES - 1) // LANES
    for index in range(*share(chunk, output.images * output.rows * blocks)):
        line = index // blocks
        channel = (index - line * blocks) * LANES
        image = line // output.rows
        row = line - image * output.rows
        count = output.channels - channel
        first = products + image * source_rows * source_columns * pixel_bytes + channel * 4
        to = pixel(output, image, row, 0) + channel * output.channel_stride
        first_y, first_row = _first_place(row, window_rows, row_hop)
        # Outputs a step apart read the same places of the window, of neighbouring pixels.
        for phase in range(min(column_step, output.columns)):
            first_x, first_column = _first_place(phase, window_columns, column_hop)
            column = phase
            while column < output.columns:
                value = load(bias + channel * 4)
                source_row, y = first_row, first_y
                while y < window_rows.extent:
                    if 0 <= source_row < source_rows:
                        source_column, x = first_column, first_x
                        at = first + (source_row * source_columns + source_column) * pixel_bytes
                        tap = y * window_columns.extent + x
                        while x < window_columns.extent:
                            if 0 <= source_column < source_columns:
                                place = at + tap * tap_bytes
                                product = load(place) if count >= LANES else read(place, 4, FP32, count)
                                if weights != 0:
                                    product = product * load(weights + tap * weight_bytes + channel * 4)
                                value = value + product
                            x, tap = x + column_hop, tap + column_hop
                            source_column, at = source_column - columns_back, at - columns_back * pixel_bytes
                    y += row_hop
                    source_row -= rows_back
                value = activate(function, value)
                write(to + column * output.pixel_stride, output.channel_stride, output.kind, value, count)
                column, first_column = column + column_step, first_column + 1


@inlined
def _first_place(index: int, window: WindowAxis, hop: int) -> tuple[int, int]:
    """The first place of a window that falls on an output, of which every `hop`-th may, and the input that it is of.

    A place falls on it where `at - place * dilation` is a multiple of the step; it is beyond any where none does.
    """
    at, place = index + window.before, 0
    while place < hop and (at - place * window.dilation) % window.step != 0:
        place += 1
    place = place if place < hop else _BEYOND
    return place, (at - place * window.dilation) // window.step
