"""Depthwise convolution: each channel by its own window, a vector of channels at a time."""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu.codes import FP32
from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.depthwise_block import sum_windows
from dryfit_cpu.compiler.memory import VECTOR_BYTES, load, read, stack_memory, store, write
from dryfit_cpu.compiler.vectors import LANES, multiply_add
from dryfit_cpu.native.functions import activate

_INFINITY: Any = float32(float("inf"))


@native
def depthwise(
    chunk: int,
    chunks: int,
    source: int,
    image_stride: int,
    row_stride: int,
    pixel_stride: int,
    channel_stride: int,
    source_rows: int,
    source_columns: int,
    weights: int,
    bias: int,
    padded_channels: int,
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
    low: float,
    high: float,
    strip: int,
    finishes: int,
    inner_activation: int,
    inner_alpha: float,
    inner_beta: float,
    activation: int,
    alpha: float,
    beta: float,
) -> None:
    """Sum over the window, plus bias, residual and activation; what is outside the input is left out.

    Weights are `[window rows, window columns, padded channels]`. Each output is summed in the order of the window,
    alone or with its neighbours. Where `finishes` is not set the limits are all that follows the sums; else they go
    through a piece of stack.
    """
    scratch = stack_memory()
    tap_bytes = padded_channels * 4
    # Outputs whose columns are all inside, from left to right, are taken several at a time.
    reach = (window_columns - 1) * column_dilation
    inside_start = (left + column_step - 1) // column_step
    inside_stop = min(columns, (source_columns - reach + left - 1) // column_step + 1)
    step = column_step * pixel_stride
    ahead = (window_rows - 1) * row_dilation * row_stride + row_step * row_stride
    shared = 0
    if column_dilation == 1 and (window_columns == 3 or window_columns == 5) and column_step <= 2:
        shared = window_columns * 4 + column_step
    is_direct = finishes == 0 and output_channel_stride == 4
    bounds = (low, high) if is_direct else (-_INFINITY, _INFINITY)
    blocks = (channels + LANES - 1) // LANES
    strips = (rows + strip - 1) // strip
    total = images * strips * blocks
    for index in range(total * chunk // chunks, total * (chunk + 1) // chunks):
        line = index // blocks
        channel = (index - line * blocks) * LANES
        image = line // strips
        count = channels - channel
        is_whole = channel_stride == 4 and count >= LANES
        bias_here, taps = bias + channel * 4, weights + channel * 4
        first_row_of_strip = (line - image * strips) * strip
        for row in range(first_row_of_strip, min(rows, first_row_of_strip + strip)):
            first_row = row * row_step - top
            y_start, y_stop = _inside(first_row, row_dilation, window_rows, source_rows)
            at_row = source + image * image_stride + channel * channel_stride
            at_row += (first_row + y_start * row_dilation) * row_stride
            tap_row = taps + y_start * window_columns * tap_bytes
            to = output + image * output_image_stride + row * output_row_stride + channel * output_channel_stride
            add = residual + image * residual_image_stride + row * residual_row_stride
            add += channel * residual_channel_stride
            column = 0
            while column < columns:
                pixels, groups, x_start, x_stop, is_shared = 1, 1, 0, window_columns, 0
                if inside_start <= column < inside_stop:
                    if is_whole and inside_stop - column >= 8:
                        pixels, is_shared = 8, shared
                        groups = (inside_stop - column) // 8 if is_direct else 1
                    elif is_whole and column + 1 < inside_stop and inside_stop - inside_start >= 4:
                        # The last group may overlap the one before: it computes the same values again.
                        column = min(column, inside_stop - 4)
                        pixels, is_shared = 4, shared
                else:
                    first_column = column * column_step - left
                    x_start, x_stop = _inside(first_column, column_dilation, window_columns, source_columns)
                sums, sums_stride = scratch, VECTOR_BYTES
                if is_direct and is_whole:
                    sums, sums_stride = to + column * output_pixel_stride, output_pixel_stride
                at = at_row + (column * column_step - left + x_start * column_dilation) * pixel_stride
                tap = tap_row + x_start * tap_bytes
                if is_whole:
                    sum_windows(
                        pixels, is_shared, groups, at, step, column_dilation * pixel_stride, row_dilation * row_stride,
                        tap, tap_bytes, window_columns * tap_bytes, y_stop - y_start, x_stop - x_start,
                        bias_here, sums, sums_stride, bounds[0], bounds[1], ahead, output_row_stride,
                    )  # fmt: skip
                else:
                    value = load(bias_here)
                    for y in range(y_stop - y_start):
                        for x in range(x_stop - x_start):
                            place = at + y * row_dilation * row_stride + x * column_dilation * pixel_stride
                            weight = load(tap + (y * window_columns + x) * tap_bytes)
                            value = multiply_add(read(place, channel_stride, FP32, count), weight, value)
                    store(scratch, value)
                if not is_direct or not is_whole:
                    for pixel in range(pixels):
                        value = activate(
                            inner_activation, load(scratch + pixel * VECTOR_BYTES), inner_alpha, inner_beta
                        )
                        if residual != 0:
                            at = add + (column + pixel) * residual_pixel_stride
                            value = value + read(at, residual_channel_stride, residual_kind, count)
                        value = activate(activation, value, alpha, beta)
                        place = to + (column + pixel) * output_pixel_stride
                        write(place, output_channel_stride, output_kind, value, count)
                column += pixels * groups


@inlined
def _inside(first: int, dilation: int, window: int, extent: int) -> tuple[int, int]:
    """Which places of a window, `first + index * dilation`, are inside the source: first and end."""
    return max(0, (dilation - 1 - first) // dilation), min(window, (extent - first + dilation - 1) // dilation)
