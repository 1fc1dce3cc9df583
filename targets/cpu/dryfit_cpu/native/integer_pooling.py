"""Maxima and averages of INT8 values over windows, a block of channels at a time."""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu.codes import FIRST
from dryfit_cpu.compiler.channel_maxima import largest_of_windows
from dryfit_cpu.compiler.channel_sums import sum_any_windows
from dryfit_cpu.compiler.compilation import native
from dryfit_cpu.compiler.memory import load, load_int, stack_memory
from dryfit_cpu.compiler.vectors import LANES, splat
from dryfit_cpu.compiler.window_variants import TO_SCALED_SUMS, WAITING_OUTPUTS
from dryfit_cpu.native.channel_blocks import BLOCK_BYTES, blocks_of_line
from dryfit_cpu.native.pooling import inside
from dryfit_cpu.native.requantization import write_limited


@native
def max_pool(
    chunk: int,
    chunks: int,
    source: int,
    image_stride: int,
    row_stride: int,
    pixel_stride: int,
    source_rows: int,
    source_columns: int,
    outside: int,
    blocks: int,
    block_count: int,
    output: int,
    output_image_stride: int,
    output_row_stride: int,
    output_pixel_stride: int,
    images: int,
    rows: int,
    columns: int,
    window_rows: int,
    window_columns: int,
    row_step: int,
    column_step: int,
    row_dilation: int,
    column_dilation: int,
    top: int,
    left: int,
) -> None:
    """The maximum of each window, whose padding counts for nothing; channels lie together and fill the blocks."""
    stop = images * rows * block_count * (chunk + 1) // chunks
    index = images * rows * block_count * chunk // chunks
    while index < stop:
        line, first_block, end_block = blocks_of_line(index, stop, block_count)
        index += end_block - first_block
        image = line // rows
        row = line - image * rows
        first_row = row * row_step - top
        begin_row, end_row = inside(first_row, row_dilation, window_rows, 0, source_rows)
        for block in range(blocks + first_block * BLOCK_BYTES, blocks + end_block * BLOCK_BYTES, BLOCK_BYTES):
            channel = load_int(block)
            largest_of_windows(
                load_int(block + 16), source + image * image_stride + first_row * row_stride + channel,
                row_dilation * row_stride, begin_row, end_row, -left, source_columns, pixel_stride, outside, 0, columns,
                output + image * output_image_stride + row * output_row_stride + channel, output_pixel_stride, 0,
                window_rows, window_columns, column_step, column_dilation,
            )  # fmt: skip


@native
def average_pool(
    chunk: int,
    chunks: int,
    source: int,
    image_stride: int,
    row_stride: int,
    pixel_stride: int,
    source_rows: int,
    source_columns: int,
    outside: int,
    blocks: int,
    block_count: int,
    output: int,
    output_image_stride: int,
    output_row_stride: int,
    output_pixel_stride: int,
    output_channel_stride: int,
    output_kind: int,
    images: int,
    rows: int,
    columns: int,
    window_rows: int,
    window_columns: int,
    row_step: int,
    column_step: int,
    row_dilation: int,
    column_dilation: int,
    top: int,
    bottom: int,
    left: int,
    right: int,
    counts_padding: int,
    source_zero: float,
    multiplier: float,
    low: float,
    high: float,
    zero_point: float,
    rounding: int,
) -> None:
    """The exact sum of each window, divided by its count, scaled, limited and, where it is INT8, rounded.

    What is summed are distances from the zero point of the source; that of the results is added in the end. Counted are
    the places inside the input, and with `counts_padding` those in its padding too. The panels' weights and multipliers
    are 1.
    """
    scratch = stack_memory()
    none: Any = float32(0.0)
    one: Any = float32(1.0)
    modes = (rounding, FIRST, False, False)
    steps = (low, high, one, one, low, high, one, low, high, none, zero_point)
    stop = images * rows * block_count * (chunk + 1) // chunks
    index = images * rows * block_count * chunk // chunks
    while index < stop:
        line, first_block, end_block = blocks_of_line(index, stop, block_count)
        index += end_block - first_block
        image = line // rows
        row = line - image * rows
        first_row = row * row_step - top
        begin_row, end_row = inside(first_row, row_dilation, window_rows, 0, source_rows)
        counted_rows = end_row - begin_row
        if counts_padding:
            y0, y1 = inside(first_row, row_dilation, window_rows, -top, source_rows + bottom)
            counted_rows = y1 - y0
        at_row = source + image * image_stride + first_row * row_stride
        to_row = output + image * output_image_stride + row * output_row_stride
        for block in range(blocks + first_block * BLOCK_BYTES, blocks + end_block * BLOCK_BYTES, BLOCK_BYTES):
            channel, width = load_int(block), load_int(block + 8)
            at, to = at_row + channel, to_row + channel * output_channel_stride
            for first in range(0, columns, WAITING_OUTPUTS):
                count = min(WAITING_OUTPUTS, columns - first)
                sum_any_windows(
                    load_int(block + 16), at, row_dilation * row_stride, begin_row, end_row, first * column_step - left,
                    source_columns, pixel_stride, outside, load_int(block + 24), count, scratch, 4 * width,
                    TO_SCALED_SUMS, window_rows, window_columns, column_step, column_dilation,
                )  # fmt: skip
                for column in range(first, first + count):
                    first_column = column * column_step - left
                    x0, x1 = inside(first_column, column_dilation, window_columns, 0, source_columns)
                    zeros = splat(float32((end_row - begin_row) * (x1 - x0)) * float32(source_zero))
                    if counts_padding:
                        x0, x1 = inside(first_column, column_dilation, window_columns, -left, source_columns + right)
                    counted = splat(float32(counted_rows * (x1 - x0)))
                    for lane in range(0, width, LANES):
                        x = load(scratch + ((column - first) * width + lane) * 4) - zeros
                        x = x / counted * splat(multiplier)
                        place = to + column * output_pixel_stride + lane * output_channel_stride
                        write_limited(place, output_channel_stride, output_kind, x, LANES, modes, steps)
