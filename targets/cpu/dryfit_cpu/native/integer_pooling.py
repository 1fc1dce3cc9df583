"""Maxima and averages of INT8 values over windows, a block of channels at a time."""

from __future__ import annotations

from numba import float32

from dryfit_cpu.compiler.channel_maxima import largest_of_windows
from dryfit_cpu.compiler.channel_sums import sum_any_windows
from dryfit_cpu.compiler.compilation import native
from dryfit_cpu.compiler.memory import load, load_int, stack_memory
from dryfit_cpu.compiler.vectors import LANES, splat
from dryfit_cpu.compiler.window_variants import TO_SCALED_SUMS, WAITING_OUTPUTS
from dryfit_cpu.descriptors import Chunk, Image, SampleSteps, Table, WindowAxis
from dryfit_cpu.native.indices import BLOCK_BYTES, blocks_of_line, inside, pixel, share
from dryfit_cpu.native.requantization import write_limited


@native
def max_pool(
    chunk: Chunk,
    source: Image,
    outside: int,
    blocks: Table,
    output: Image,
    window_rows: WindowAxis,
    window_columns: WindowAxis,
) -> None:
    """The maximum of each window, whose padding counts for nothing; channels lie together and fill the blocks."""
    index, stop = share(chunk, output.images * output.rows * blocks.rows)
    while index < stop:
        line, first_block, end_block = blocks_of_line(index, stop, blocks.rows)
        index += end_block - first_block
        image = line // output.rows
        row = line - image * output.rows
        first_row = row * window_rows.step - window_rows.before
        begin_row, end_row = inside(first_row, window_rows.dilation, window_rows.extent, 0, source.rows)
        # A vector of bytes, and no table of windows: maxima of INT8 are one instruction for as many channels as a
        # register has bytes, and no place that is outside has to be left out: it reads a row of -128.
        for block in range(
            blocks.address + first_block * BLOCK_BYTES, blocks.address + end_block * BLOCK_BYTES, BLOCK_BYTES
        ):
            channel = load_int(block)
            largest_of_windows(
                load_int(block + 16), pixel(source, image, first_row, 0) + channel,
                window_rows.dilation * source.row_stride, begin_row, end_row, -window_columns.before, source.columns,
                source.pixel_stride, outside, 0, output.columns, pixel(output, image, row, 0) + channel,
                output.pixel_stride, 0, window_rows.extent, window_columns.extent, window_columns.step,
                window_columns.dilation,
            )  # fmt: skip


@native
def average_pool(
    chunk: Chunk,
    source: Image,
    outside: int,
    blocks: Table,
    output: Image,
    window_rows: WindowAxis,
    window_columns: WindowAxis,
    counts_padding: int,
    steps: SampleSteps,
) -> None:
    """The exact sum of each window, divided by its count, scaled, limited and, where it is INT8, rounded.

    What is summed are distances from the zero point of the source; that of the results is added in the end. Counted are
    the places inside the input, and with `counts_padding` those in its padding too. The panels' weights and multipliers
    are 1.
    """
    scratch = stack_memory()
    top, left = window_rows.before, window_columns.before
    limits = (steps.low, steps.high, steps.zero_point)
    index, stop = share(chunk, output.images * output.rows * blocks.rows)
    while index < stop:
        line, first_block, end_block = blocks_of_line(index, stop, blocks.rows)
        index += end_block - first_block
        image = line // output.rows
        row = line - image * output.rows
        first_row = row * window_rows.step - top
        begin_row, end_row = inside(first_row, window_rows.dilation, window_rows.extent, 0, source.rows)
        counted_rows = end_row - begin_row
        if counts_padding:
            behind = source.rows + window_rows.behind
            y0, y1 = inside(first_row, window_rows.dilation, window_rows.extent, -top, behind)
            counted_rows = y1 - y0
        at_row, to_row = pixel(source, image, first_row, 0), pixel(output, image, row, 0)
        for block in range(
            blocks.address + first_block * BLOCK_BYTES, blocks.address + end_block * BLOCK_BYTES, BLOCK_BYTES
        ):
            channel, width = load_int(block), load_int(block + 8)
            at, to = at_row + channel, to_row + channel * output.channel_stride
            for first in range(0, output.columns, WAITING_OUTPUTS):
                count = min(WAITING_OUTPUTS, output.columns - first)
                # A sum of bytes is a depthwise convolution whose weights are 1: the code for that is there already.
                sum_any_windows(
                    load_int(block + 16), at, window_rows.dilation * source.row_stride, begin_row, end_row,
                    first * window_columns.step - left, source.columns, source.pixel_stride, outside,
                    load_int(block + 24), count, scratch, 4 * width, TO_SCALED_SUMS, window_rows.extent,
                    window_columns.extent, window_columns.step, window_columns.dilation,
                )  # fmt: skip
                for column in range(first, first + count):
                    place = column * window_columns.step - left
                    x0, x1 = inside(place, window_columns.dilation, window_columns.extent, 0, source.columns)
                    # Padding is 0, not the zero point: so the zero point is taken off once for each place inside.
                    zeros = splat(float32((end_row - begin_row) * (x1 - x0)) * float32(steps.source_zero))
                    if counts_padding:
                        behind = source.columns + window_columns.behind
                        x0, x1 = inside(place, window_columns.dilation, window_columns.extent, -left, behind)
                    counted = splat(float32(counted_rows * (x1 - x0)))
                    for lane in range(0, width, LANES):
                        x = load(scratch + ((column - first) * width + lane) * 4) - zeros
                        # A division, and not a factor of 1 / count: that is rounded, and would be for each result.
                        x = x / counted * splat(steps.multiplier)
                        at_lane = to + column * output.pixel_stride + lane * output.channel_stride
                        write_limited(at_lane, output.channel_stride, output.kind, x, LANES, steps.rounding, limits)
