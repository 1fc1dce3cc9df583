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

from dryfit_cpu.codes import DOUBLE_PRODUCTS, LEAVES_SUMS, PANEL_CHANNELS, WHOLE_TILE
from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.integer_micro_kernel import (
    BLOCK_ROW_BYTES,
    held_arguments,
    integer_ending,
    pair_micro_kernel,
)
from dryfit_cpu.compiler.memory import VECTOR_BYTES, load_int, stack_memory
from dryfit_cpu.compiler.register_block import PANEL_ROW_BYTES
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.compiler.tile_transforms import byte_input_transform, exact_output_transform, window_transform
from dryfit_cpu.compiler.vectors import LANES
from dryfit_cpu.native.requantization import finish_rows
from dryfit_cpu.native.winograd_matrices import (
    WHOLE_INPUT_TRANSFORM,
    WHOLE_KERNEL_TRANSFORM,
    WHOLE_MULTIPLES,
    WHOLE_OUTPUT_TRANSFORM,
)
from dryfit_cpu.native.winograd_tiles import input_tiles, tile_place

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
    chunk: int,
    chunks: int,
    transformed: int,
    tile_pitch: int,
    position_bytes: int,
    blocks: int,
    block_count: int,
    segments: int,
    pairs: int,
    windows: int,
    panels: int,
    scratch: int,
    products: int,
    product_pitch: int,
    product_position_bytes: int,
) -> None:
    """Sums over `pairs` of channels at each position: `[tiles, C] x [C, panels * 32]`, INT32.

    Windows are weights, INT8 `[panels, pairs, 3 * 3, 32, 2]`. They are transformed here, for two rows of positions at
    a time, to scratch memory of each chunk: what they become is eight times as large, and would come from memory more
    slowly than it is made. Blocks, a table of (first tile, tiles), cover the tiles; `segments` is the address of a word
    of zero.
    """
    # A row more, so that columns do not share sets of the first-level cache.
    column_bytes = (pairs + 1) * PANEL_ROW_BYTES
    weights = scratch + chunk * 2 * _EXTENT * column_bytes
    for index in range(panels * _HALF * chunk // chunks, panels * _HALF * (chunk + 1) // chunks):
        panel = index // _HALF
        two = index - panel * _HALF
        panel_windows = windows + panel * pairs * _WINDOW_BYTES
        _window_rows(two, panel_windows, pairs, weights, column_bytes)
        for column in range(2 * _EXTENT):
            position = two * 2 * _EXTENT + column
            row = weights + column * column_bytes
            # The next panel's windows are asked for, a part at each position.
            ahead = panel_windows + pairs * _WINDOW_BYTES + position * (pairs * _WINDOW_BYTES // _EXTENT**2)
            read = transformed + position * position_bytes
            to = products + position * product_position_bytes + panel * PANEL_ROW_BYTES
            for channel in range(0, PANEL_CHANNELS, _CHANNELS):
                for block in range(block_count):
                    first, count = load_int(blocks + block * 16), load_int(blocks + block * 16 + 8)
                    arguments = (
                        read + first * tile_pitch, tile_pitch, segments, pairs, row + channel * 4, ahead,
                        to + first * product_pitch + channel * 4, product_pitch,
                    )  # fmt: skip
                    if count == _ROWS:
                        _block(*arguments)
                    else:
                        _smaller_block(*arguments)


@native
def transform_output(
    chunk: int,
    chunks: int,
    products: int,
    tile_pitch: int,
    position_bytes: int,
    starts: int,
    multipliers: int,
    shifts: int,
    scaling: int,
    real_bias: int,
    tile_rows: int,
    tile_columns: int,
    first_tile: int,
    tiles: int,
    output: int,
    output_image_stride: int,
    output_row_stride: int,
    output_pixel_stride: int,
    output_kind: int,
    rows: int,
    columns: int,
    channels: int,
    residual: int,
    residual_image_stride: int,
    residual_row_stride: int,
    residual_pixel_stride: int,
    residual_kind: int,
    ending: int,
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
    """Transform `[positions, tiles, channels]` to sums, and requantize these as `native/integer_convolution.py` does.

    Channels are a multiple of 32. A block of sums goes through the stack.
    """
    scratch = stack_memory()
    shift_bytes = 2 if scaling == DOUBLE_PRODUCTS else 1
    modes = (rounding, operation, rounds_sum != 0, rounds_last != 0)
    steps = (
        sum_low, sum_high, sum_multiplier, residual_multiplier, low, high, last_multiplier, last_low, last_high,
        residual_zero, zero_point,
    )  # fmt: skip
    held = held_arguments(
        0, 0, starts, multipliers, real_bias, 0, 0, 0, 0, 0, ending, scratch, output_pixel_stride,
        residual_pixel_stride, *steps,
    )  # fmt: skip
    for index in range(tiles * chunk // chunks, tiles * (chunk + 1) // chunks):
        image, y, x = tile_place(first_tile + index, tile_rows, tile_columns, _SIZE)
        corner = output + image * output_image_stride + y * output_row_stride + x * output_pixel_stride
        added = residual + image * residual_image_stride + y * residual_row_stride + x * residual_pixel_stride
        height, width = min(_SIZE, rows - y), min(_SIZE, columns - x)
        for channel in range(0, channels, _CHANNELS):
            at_channel = channel * 4
            for part in range(0, 2 * VECTOR_BYTES, VECTOR_BYTES):
                _output_tile(
                    products + index * tile_pitch + at_channel + part, _EXTENT * position_bytes, position_bytes,
                    scratch + part, _SIZE * BLOCK_ROW_BYTES, BLOCK_ROW_BYTES, starts + at_channel + part,
                )  # fmt: skip
            panel_bias = real_bias + at_channel if real_bias != 0 else 0
            scales = (multipliers + at_channel, shifts + shift_bytes * at_channel, scaling, panel_bias)
            for i in range(height):
                sums = scratch + i * _SIZE * BLOCK_ROW_BYTES
                to = corner + i * output_row_stride + channel * (4 >> (output_kind & 3))
                at = 0
                if residual != 0:
                    at = added + i * residual_row_stride + channel * (4 >> (residual_kind & 3))
                if ending == LEAVES_SUMS:
                    row = (sums, to, output_pixel_stride, at, residual_pixel_stride, width)
                    finish_rows(row, scales, 2 * LANES, output_kind, residual_kind, modes, steps)
                else:
                    strides = (output_pixel_stride, residual_pixel_stride)
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
