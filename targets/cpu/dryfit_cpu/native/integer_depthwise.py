"""Depthwise convolution of INT8 values: each channel by its own window, a block of channels at a time."""

from __future__ import annotations

from typing import Any

from dryfit_cpu.codes import REAL_PRODUCTS
from dryfit_cpu.compiler.channel_sums import sum_windows
from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.fixed_point import as_integer_bits
from dryfit_cpu.compiler.memory import load, load_int, stack_memory
from dryfit_cpu.compiler.vectors import LANES
from dryfit_cpu.compiler.window_variants import TO_SCALED_SUMS, WAITING_OUTPUTS
from dryfit_cpu.native.channel_blocks import BLOCK_BYTES, blocks_of_line
from dryfit_cpu.native.pooling import inside
from dryfit_cpu.native.requantization import fixed_products, fixed_scales, requantized, write_limited


@native
def depthwise(
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
    form: int,
    multipliers: int,
    shifts: int,
    scaling: int,
    output: int,
    output_image_stride: int,
    output_row_stride: int,
    output_pixel_stride: int,
    output_channel_stride: int,
    output_kind: int,
    residual: int,
    residual_image_stride: int,
    residual_row_stride: int,
    residual_pixel_stride: int,
    residual_channel_stride: int,
    residual_kind: int,
    images: int,
    rows: int,
    columns: int,
    channels: int,
    window_rows: int,
    window_columns: int,
    row_step: int,
    column_step: int,
    row_dilation: int,
    column_dilation: int,
    top: int,
    left: int,
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
    """Exact sums over windows, requantized; the source's channels lie together, and fill the blocks.

    Blocks are described in `compiler/window_variants.py`, and so is the form: INT8 results whose channels lie together
    may be written at once; all others go through scaled sums on the stack. Those that fixed-point multipliers and
    shifts scale, one each a channel, are there as they are.
    """
    scratch = stack_memory()
    modes = (rounding, operation, rounds_sum != 0, rounds_last != 0)
    steps = (
        sum_low, sum_high, sum_multiplier, residual_multiplier, low, high, last_multiplier, last_low, last_high,
        residual_zero, zero_point,
    )  # fmt: skip
    stop = images * rows * block_count * (chunk + 1) // chunks
    index = images * rows * block_count * chunk // chunks
    while index < stop:
        line, first_block, end_block = blocks_of_line(index, stop, block_count)
        index += end_block - first_block
        image = line // rows
        row = line - image * rows
        first_row = row * row_step - top
        begin_row, end_row = inside(first_row, row_dilation, window_rows, 0, source_rows)
        at_row = source + image * image_stride + first_row * row_stride
        to_row = output + image * output_image_stride + row * output_row_stride
        add_row = residual + image * residual_image_stride + row * residual_row_stride
        for block in range(blocks + first_block * BLOCK_BYTES, blocks + end_block * BLOCK_BYTES, BLOCK_BYTES):
            channel, width = load_int(block), load_int(block + 8)
            number, panel = load_int(block + 16), load_int(block + 24)
            at, to = at_row + channel, to_row + channel * output_channel_stride
            if form != TO_SCALED_SUMS:
                sum_windows(
                    number, at, row_dilation * row_stride, begin_row, end_row, -left, source_columns, pixel_stride,
                    outside, panel, columns, to, output_pixel_stride, form, window_rows, window_columns, column_step,
                    column_dilation,
                )  # fmt: skip
                continue
            add = add_row + channel * residual_channel_stride
            for first in range(0, columns, WAITING_OUTPUTS):
                pixels = min(WAITING_OUTPUTS, columns - first)
                sum_windows(
                    number, at, row_dilation * row_stride, begin_row, end_row, first * column_step - left,
                    source_columns, pixel_stride, outside, panel, pixels, scratch, 4 * width, form, window_rows,
                    window_columns, column_step, column_dilation,
                )  # fmt: skip
                for pixel in range(pixels):
                    _write_pixel(
                        scratch + pixel * width * 4, min(width, channels - channel),
                        add + (first + pixel) * residual_pixel_stride, residual_channel_stride, residual_kind,
                        to + (first + pixel) * output_pixel_stride, output_channel_stride, output_kind, modes, steps,
                        (multipliers, shifts, channel, scaling),
                    )  # fmt: skip


@inlined
def _write_pixel(
    sums: int,
    channels: int,
    residual: int,
    residual_stride: int,
    residual_kind: int,
    output: int,
    output_stride: int,
    output_kind: int,
    modes: Any,
    steps: Any,
    scales: Any,
) -> None:
    """The results of an output from its scaled sums, or from sums that fixed-point numbers scale."""
    multipliers, shifts, first_channel, scaling = scales
    for lane in range(0, channels, LANES):
        count = channels - lane
        add = residual + lane * residual_stride
        x = load(sums + lane * 4)
        if scaling != REAL_PRODUCTS:
            place = first_channel + lane
            scale = fixed_scales(multipliers, shifts, place, scaling)
            x = fixed_products(as_integer_bits(x), scale, shifts + 8 * place, scaling, modes[0])
        x = requantized(x, add, residual_stride, residual_kind, count, modes, steps)
        write_limited(output + lane * output_stride, output_stride, output_kind, x, count, modes, steps)
