"""Convolution and matrix products as an implicit matrix product over tiles of pixels and panels of output channels.

And deconvolution's second half: each output collects what the inputs' windows lay on it.
"""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu.codes import FP32, PANEL_WORDS, TILE_WORDS, TILES_OUTSIDE
from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.line_copies import CACHE_LINE
from dryfit_cpu.compiler.memory import copy_bytes, load, load_int, read, stack_memory, store_int, store_some, write
from dryfit_cpu.compiler.register_block import BLOCK_ROW_BYTES, PANEL_ROW_BYTES, UNROLL, held_arguments, micro_kernel
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.compiler.vectors import LANES
from dryfit_cpu.descriptors import Chunk, Finish, Function, Image, Pixels, Runs, WindowAxis, WordTable
from dryfit_cpu.native.functions import activate, activate_sums
from dryfit_cpu.native.indices import alike, parted, pixel, share

TILE_BYTES = 8 * TILE_WORDS
"""A row of the tile table: byte offsets of the two runs in input, output and residual, and the number of pixels."""
PANEL_BYTES = 8 * PANEL_WORDS
"""A row of the panel table: byte offsets in weights, bias, input, output and residual, and the number of channels."""

_ROWS, _FEWER = current_tier().rows, current_tier().fewer_rows
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
block_fewer = micro_kernel(_FEWER, runs=2)
block_half = micro_kernel(_HALF, runs=1)
block_one = micro_kernel(1, runs=1)
narrow_whole = micro_kernel(_ROWS, runs=2, vectors=1)
narrow_fewer = micro_kernel(_FEWER, runs=2, vectors=1)
narrow_half = micro_kernel(_HALF, runs=1, vectors=1)
narrow_one = micro_kernel(1, runs=1, vectors=1)
_SHORT = current_tier().short_lanes
_HAS_SHORT = _SHORT < LANES
short_whole = micro_kernel(_ROWS, runs=2, vectors=1, lanes=_SHORT) if _HAS_SHORT else narrow_whole
short_half = micro_kernel(_HALF, runs=1, vectors=1, lanes=_SHORT) if _HAS_SHORT else narrow_half
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
    part, outer_parts, inner_start, inner_stop = parted(chunk, inner_parts, inner)
    # A panel that does not fit that cache is cut along k, and all tiles go by each block of it: 22 to 29 % less time
    # with 512 channels and a 3 x 3 window. The sums so far are stored and loaded again, which is exact in FP32.
    rounds = 1 if order == TILES_OUTSIDE else k_blocks
    outer_start, outer_stop = outer * part // outer_parts * rounds, outer * (part + 1) // outer_parts * rounds
    # What does not change in the inner loop is found outside of it: with few words of k a block takes no longer than
    # finding where it lies.
    span = segments.runs * segments.length
    tile_step, panel_step = (0, PANEL_BYTES) if order == TILES_OUTSIDE else (TILE_BYTES, 0)
    held = 0
    for i in range(outer_start, outer_stop):
        tile_index, panel_index, k_block = i, inner_start, 0
        if order != TILES_OUTSIDE:
            tile_index, panel_index = inner_start, i // k_blocks
            k_block = i - panel_index * k_blocks
        tile, panel = tiles.address + tile_index * TILE_BYTES, panels.address + panel_index * PANEL_BYTES
        block_weights = weights + k_block * span * PANEL_ROW_BYTES
        ahead, ahead_step = load_int(tiles.address + min(i + 1, tiles.rows - 1) * TILE_BYTES), _ROWS * 4 * UNROLL
        ahead += input.address + load_int(panel + 16)
        if order != TILES_OUTSIDE:
            ahead, ahead_step = _next_panel(block_weights, load_int(panel), span), BLOCK_ROW_BYTES * UNROLL
        # What is needed next is asked for while this is computed, as evenly as the inner loop goes on: memory gives it
        # slowly, and lines that come too early push out others. The processor foresees runs, but not where the next one
        # begins: a tenth less time for ResNet-50 than without.
        asking = max(inner_start, inner_stop - _ASKING)
        ahead_step = min(CACHE_LINE, ahead_step // max(1, inner_stop - asking) + 1)
        if i == outer_start or k_blocks > 1:
            # Limits and residual are for the whole sum: no block of k but the last has them.
            is_last = k_block == k_blocks - 1
            low, high, slope, shift = (finish.low, finish.high, finish.slope, finish.shift) if is_last else NO_LIMITS
            adds, to, to_stride = is_last and not finish.bypasses, output.address, output.stride
            if finish.bypasses:
                to, to_stride = scratch, BLOCK_ROW_BYTES
            held = held_arguments(
                input.address, block_weights, 0 if k_block > 0 or continues else bias, to,
                residual.address if adds else 0, input.stride, segments.address + k_block * segments.runs * 8,
                segments.runs, segments.length, to_stride, residual.stride, ahead_step, tile_step, panel_step,
                low, high, slope, shift,
            )  # fmt: skip
        turn, moves = inner_start, segments.runs * (segments.length // UNROLL) * ahead_step
        while turn < inner_stop:
            # Blocks of a kind, tiles of one panel or panels of one tile, are one call: with few words of k, telling
            # each what to do would take longer than to do it.
            move, left = (moves, inner_stop - turn) if turn >= asking else (0, asking - turn)
            rows, count = (tile, panel), 1
            if finish.bypasses:
                rows = _rows_of_piece(scratch + _ROWS * BLOCK_ROW_BYTES, tile, panel)
            elif order == TILES_OUTSIDE:
                count = alike(panel + 40, PANEL_BYTES, left)
            else:
                count = alike(tile + 48, TILE_BYTES, left)
            sum_blocks(load_int(tile + 48), load_int(panel + 40), (count, *rows, ahead, held, move))
            if finish.bypasses:
                finish_block(scratch, tile, panel, output, residual, finish)
            turn, ahead = turn + count, ahead + count * move
            tile, panel = tile + count * tile_step, panel + count * panel_step


@inlined
def _run(pixels: int) -> int:
    """The pixels of the first run of a tile of so many."""
    return pixels // 2 if pixels > _HALF else _HALF


@inlined
def _rows_of_piece(rows: int, tile: int, panel: int) -> tuple[int, int]:
    """Rows of the tables, made at an address, of a block whose sums lie together from the output's address on."""
    copy_bytes(rows, tile, TILE_BYTES)
    store_int(rows + 16, 0)
    store_int(rows + 24, _run(load_int(tile + 48)) * BLOCK_ROW_BYTES)
    copy_bytes(rows + TILE_BYTES, panel, PANEL_BYTES)
    store_int(rows + TILE_BYTES + 24, 0)
    return rows, rows + TILE_BYTES


@inlined
def _next_panel(weights: int, panel: int, span: int) -> int:
    """Where in the next packed panel the share of it begins that a block asks for, by its own place in weights."""
    return weights + panel + span * PANEL_ROW_BYTES + (span - 1) * (panel % PANEL_ROW_BYTES)


@inlined
def sum_blocks(pixels: int, channels: int, arguments: Any) -> None:
    """Compute blocks of so many pixels and channels by the micro-kernel of their size.

    A narrow block is for the last channels: one vector, whose missing lanes are masked, costs half of a block that
    would compute channels that there are not. A short one costs half of that. A wide one is of one pixel.
    """
    if _HAS_SHORT and channels <= _SHORT and pixels in (_ROWS, _HALF):
        if pixels == _ROWS:
            short_whole(*arguments)
        else:
            short_half(*arguments)
    elif channels <= LANES:
        if pixels == _ROWS:
            narrow_whole(*arguments)
        elif pixels == _FEWER:
            narrow_fewer(*arguments)
        elif pixels == _HALF:
            narrow_half(*arguments)
        else:
            narrow_one(*arguments)
    elif pixels == _ROWS:
        block_whole(*arguments)
    elif pixels == _FEWER:
        block_fewer(*arguments)
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
def finish_block(sums: int, tile: int, panel: int, output: Pixels, residual: Pixels, finish: Finish) -> None:
    """What follows a block's sums, which lie together, to its outputs: those of rows of the tables."""
    pixels, channels, has_residual = load_int(tile + 48), load_int(panel + 40), residual.address != 0
    finish_sums(finish, has_residual, sums, max(pixels * _CHANNELS, channels))
    for number in range(pixels):
        side, place = number // _run(pixels) * 8, number % _run(pixels)
        to = output.address + load_int(panel + 24) + load_int(tile + 16 + side) + place * output.stride
        add = residual.address + load_int(panel + 32) + load_int(tile + 32 + side) + place * residual.stride
        of_pixel = sums + number * BLOCK_ROW_BYTES
        finish_pixel(of_pixel, to, add if has_residual else 0, channels, output.kind, residual.kind, finish)


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
    along = column_hop * tap_bytes - columns_back * pixel_bytes
    down = row_hop * window_columns.extent * tap_bytes - rows_back * source_columns * pixel_bytes
    weight_along, weight_down = column_hop * weight_bytes, row_hop * window_columns.extent * weight_bytes
    blocks = (output.channels + LANES - 1) // LANES
    for index in range(*share(chunk, output.images * output.rows * blocks)):
        line = index // blocks
        channel = (index - line * blocks) * LANES
        image = line // output.rows
        row = line - image * output.rows
        count = output.channels - channel
        first = products + image * source_rows * source_columns * pixel_bytes + channel * 4
        to = pixel(output, image, row, 0) + channel * output.channel_stride
        y, source_row = _first_place(row, window_rows, row_hop)
        skipped, terms_down = _inside(source_row, rows_back, source_rows, _places(y, window_rows, row_hop))
        y, source_row = y + skipped * row_hop, source_row - skipped * rows_back
        # Outputs a step apart read the same places of the window, of neighbouring pixels.
        for phase in range(min(column_step, output.columns)):
            x, source_column = _first_place(phase, window_columns, column_hop)
            places, tap = _places(x, window_columns, column_hop), y * window_columns.extent + x
            column = phase
            while column < output.columns:
                # Which places fall inside the input is found once for all of them: asked for each, it would take twice
                # as long as the sum.
                skipped, terms_along = _inside(source_column, columns_back, source_columns, places)
                source = source_row * source_columns + source_column - skipped * columns_back
                place = first + source * pixel_bytes + (tap + skipped * column_hop) * tap_bytes
                weight = weights + (tap + skipped * column_hop) * weight_bytes + channel * 4
                value = load(bias + channel * 4)
                below, end_below, end = 0, terms_down * row_hop, terms_along * column_hop
                while below < end_below:
                    at, factor, beside = place, weight, 0
                    while beside < end:
                        product = load(at) if count >= LANES else read(at, 4, FP32, count)
                        if weights != 0:
                            product = product * load(factor)
                        value = value + product
                        at, factor, beside = at + along, factor + weight_along, beside + column_hop
                    place, weight, below = place + down, weight + weight_down, below + row_hop
                value = activate(function, value)
                place = to + column * output.pixel_stride
                if count < LANES and output.kind == FP32 and output.channel_stride == 4:
                    store_some(place, value, count)
                else:
                    write(place, output.channel_stride, output.kind, value, count)
                column, source_column = column + column_step, source_column + 1


@inlined
def _places(first: int, window: WindowAxis, hop: int) -> int:
    """How many places of a window there are from the first one on, each so many behind the one before."""
    return max(0, (window.extent - first + hop - 1) // hop)


@inlined
def _inside(first: int, back: int, extent: int, places: int) -> tuple[int, int]:
    """Which of places are of inputs inside an extent: how many come before, and how many there are.

    The first is of the input `first`, each other one of the input that lies so many back.
    """
    if first < extent and first >= (places - 1) * back:
        return 0, places
    skipped = max(0, (first - extent) // back + 1)
    return skipped, max(0, min(places, first // back + 1) - skipped)


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
