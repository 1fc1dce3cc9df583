"""Winograd's minimal filtering in whole numbers: exact, with transforms and products of 16-bit integers.

What is computed is drawn in `winograd.py`; tiles are of 4 x 4, and matrices without fractions:

    input tile, INT8     B^T d B, INT16     products, INT32      A^T s A, INT32       results, INT8
    6 x 6 x C         ---------------->  [tiles, C] x [C, K]  ------------------->  4 x 4 x K
                       at most 100 * 128    of pairs, at 36       576, 288, ... 36 times the sums,
                                            positions             divided: exact modulo 2**32

The weights stay INT8, and G g G^T is made of them while they are multiplied.

Sums may wrap around between the first product and the last division. `kernels/integer_winograd.py` says when the
results are the sums of the direct convolution nevertheless.
"""

from __future__ import annotations

from typing import Any

from dryfit_cpu.codes import LEAVES_SUMS, PANEL_CHANNELS, WHOLE_TILE
from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.integer_micro_kernel import held_arguments, integer_ending, pair_micro_kernel
from dryfit_cpu.compiler.memory import VECTOR_BYTES, load_int, stack_memory
from dryfit_cpu.compiler.register_block import BLOCK_ROW_BYTES, PANEL_ROW_BYTES
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.compiler.tile_transforms import byte_input_transform, exact_output_transform, window_transform
from dryfit_cpu.compiler.vectors import LANES
from dryfit_cpu.descriptors import (
    ChannelScales,
    Chunk,
    Image,
    Pixels,
    Positions,
    RequantizationSteps,
    TileGrid,
    WordTable,
)
from dryfit_cpu.native.indices import pixel, share
from dryfit_cpu.native.requantization import channels_from, finish_rows, numbers_of
from dryfit_cpu.native.winograd import input_tiles, part_and_tile, part_channels, tile_place
from dryfit_cpu.native.winograd_matrices import (
    WHOLE_INPUT_TRANSFORM,
    WHOLE_KERNEL_TRANSFORM,
    WHOLE_MULTIPLES,
    WHOLE_OUTPUT_TRANSFORM,
)

_SIZE = WHOLE_TILE
_EXTENT = _SIZE + 2
_HALF = _EXTENT // 2
_ROWS, _FEWER_ROWS = current_tier().rows, current_tier().fewer_rows
_CHANNELS = current_tier().block_channels
_WINDOW_BYTES = 2 * 3 * 3 * PANEL_CHANNELS
"""Weights of a pair of input channels in a panel."""

_window_rows = window_transform("whole_window", WHOLE_KERNEL_TRANSFORM)
_output_tile = exact_output_transform("whole_output", WHOLE_OUTPUT_TRANSFORM, WHOLE_MULTIPLES)
_block, _smaller_block = pair_micro_kernel(_ROWS), pair_micro_kernel(_FEWER_ROWS)
_end_row, _end_pixel = integer_ending(_SIZE), integer_ending(1)


transform_input = native(
    input_tiles(
        _SIZE,
        byte_input_transform("whole_input", WHOLE_INPUT_TRANSFORM),
        together=_CHANNELS,
        value_bytes=1,
        transformed_bytes=2,
    )
)


@native
def multiply(
    chunk: Chunk,
    transformed: Positions,
    blocks: WordTable,
    segments: int,
    pairs: int,
    windows: int,
    panels: int,
    part_panels: int,
    groups: int,
    scratch: int,
    products: Positions,
) -> None:
    """Sums over `pairs` of channels at each position: `[tiles, C] x [C, panels * 32]`, INT32.

    Of the parts of a strip each multiplies by `part_panels`, and all together by so many `groups`: each part by all
    panels, one after the other, or by panels of its own.

    Windows are weights, INT8 `[panels, pairs, 3 * 3, 32, 2]`. They are transformed here, for two rows of positions at
    a time, to scratch memory of each chunk: what they become is eight times as large, and would come from memory more
    slowly than it is made. Blocks, a table of (first tile, tiles), cover the tiles; `segments` is the address of a word
    of zero.
    """
    # A row more, so that columns do not share sets of the first-level cache.
    column_bytes = (pairs + 1) * PANEL_ROW_BYTES
    weights = scratch + chunk.number * 2 * _EXTENT * column_bytes
    # The unit is a panel and a third of its positions: few panels are enough for several threads, and what is
    # transformed at a time, two rows of positions, stays in the cache of the thread that multiplies by it.
    for index in range(*share(chunk, groups * _HALF)):
        group = index // _HALF
        two = index - group * _HALF
        part, panel = group // part_panels, group % panels
        panel_windows = windows + panel * pairs * _WINDOW_BYTES
        _window_rows(two, panel_windows, pairs, weights, column_bytes)
        for column in range(2 * _EXTENT):
            position = two * 2 * _EXTENT + column
            row = weights + column * column_bytes
            # The next panel's windows are asked for, a part at each position.
            ahead = panel_windows + pairs * _WINDOW_BYTES + position * (pairs * _WINDOW_BYTES // _EXTENT**2)
            read = transformed.address + part * transformed.part_bytes + position * transformed.position_bytes
            to = products.address + part * products.part_bytes + position * products.position_bytes
            to += panel * PANEL_ROW_BYTES
            for channel in range(0, PANEL_CHANNELS, _CHANNELS):
                for block in range(blocks.rows):
                    row_of = blocks.address + block * 16
                    first, count = load_int(row_of), load_int(row_of + 8)
                    arguments = (
                        read + first * transformed.tile_pitch, transformed.tile_pitch, segments, pairs,
                        row + channel * 4, ahead, to + first * products.tile_pitch + channel * 4, products.tile_pitch,
                    )  # fmt: skip
                    if count == _ROWS:
                        _block(*arguments)
                    else:
                        _smaller_block(*arguments)


@native
def transform_output(
    chunk: Chunk,
    products: Positions,
    scales: ChannelScales,
    tiles: TileGrid,
    output: Image,
    residual: Image,
    ending: int,
    steps: RequantizationSteps,
) -> None:
    """Transform `[parts, positions, tiles, channels]` to sums, and requantize them as `integer_convolution.py` does.

    Channels of a part are a multiple of 32. A block of sums goes through the stack.
    """
    scratch = stack_memory()
    held = held_arguments(
        0, 0, scales.starts, scales.multipliers, scales.real_bias, 0, 0, 0, 0, 0, ending, scratch, 0,
        output.pixel_stride, residual.pixel_stride, *numbers_of(steps),
    )  # fmt: skip
    for turn in range(*share(chunk, tiles.parts * tiles.tiles)):
        part, index, tile = part_and_tile(turn, tiles)
        if tile >= tiles.end:
            continue
        image, y, x = tile_place(tile, tiles.rows, tiles.columns, _SIZE)
        first = products.address + part * products.part_bytes + index * products.tile_pitch
        corner, added = pixel(output, image, y, x), pixel(residual, image, y, x)
        height, width = min(_SIZE, output.rows - y), min(_SIZE, output.columns - x)
        for channel in range(*part_channels(part, tiles, output.channels), _CHANNELS):
            at_channel = channel * 4
            # Two vectors, since a register block's ending takes the channels of two: as wide as it packs to bytes.
            for vector in range(0, 2 * VECTOR_BYTES, VECTOR_BYTES):
                _output_tile(
                    first + at_channel + vector,
                    _EXTENT * products.position_bytes, products.position_bytes, scratch + vector,
                    _SIZE * BLOCK_ROW_BYTES, BLOCK_ROW_BYTES, scales.starts + at_channel + vector,
                )  # fmt: skip
            # A tile has rows and columns beyond the image where its size is no multiple of 4: they are computed, as all
            # tiles are computed alike, and left out here.
            for i in range(height):
                sums = scratch + i * _SIZE * BLOCK_ROW_BYTES
                to = corner + i * output.row_stride + channel * (4 >> (output.kind & 3))
                at = 0
                if residual.address != 0:
                    at = added + i * residual.row_stride + channel * (4 >> (residual.kind & 3))
                if ending == LEAVES_SUMS:
                    finish_rows(
                        sums, Pixels(to, output.pixel_stride, output.kind),
                        Pixels(at, residual.pixel_stride, residual.kind), width, 2 * LANES,
                        channels_from(scales, channel), steps,
                    )  # fmt: skip
                else:
                    strides = (output.pixel_stride, residual.pixel_stride)
                    _end_pixels(held, sums, at_channel, to, at, strides, width)


@inlined
def _end_pixels(held: int, sums: int, at_channel: int, to: int, at: int, strides: Any, width: int) -> None:
    """Requantize the pixels of a tile's row that the image has."""
    if width == _SIZE:
        _end_row(held, sums, at_channel, to, at)
    else:
        for pixel in range(width):
            added = at + pixel * strides[1] if at != 0 else 0
            _end_pixel(held, sums + pixel * BLOCK_ROW_BYTES, at_channel, to + pixel * strides[0], added)
