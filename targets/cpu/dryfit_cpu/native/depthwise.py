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
    last_inside = (source_columns - (window_columns - 1) * column_dilation + left - 1) // column_step
    inside = ((left + column_step - 1) // column_step, min(columns, last_inside + 1))
    step, column_hop, taps_of_row = (
        column_step * pixel_stride,
        column_dilation * pixel_stride,
        (window_columns, tap_bytes),
    )
    ahead = (window_rows - 1) * row_dilation * row_stride + row_step * row_stride
    shared = 0
    if column_dilation == 1 and window_columns in (3, 5) and column_step <= 2:
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
            add = (
                residual + image * residual_image_stride + row * residual_row_stride + channel * residual_channel_stride
            )
            column = 0
            while column < columns:
                column, pixels, groups = _group_at(column, inside[0], inside[1], is_whole, is_direct)
                x_start, x_stop = 0, window_columns
                if not inside[0] <= column < inside[1]:
                    first_column = column * column_step - left
                    x_start, x_stop = _inside(first_column, column_dilation, window_columns, source_columns)
                sums, sums_stride = scratch, VECTOR_BYTES
                if is_direct and is_whole:
                    sums, sums_stride = to + column * output_pixel_stride, output_pixel_stride
                at, tap = at_row + (column * column_step - left) * pixel_stride, tap_row + x_start * tap_bytes
                at += x_start * column_hop
                if is_whole:
                    sum_windows(
                        pixels, shared if pixels > 1 else 0, groups, at, step,
                        column_hop, row_dilation * row_stride, tap, taps_of_row[1], window_columns * tap_bytes,
                        y_stop - y_start, x_stop - x_start,
                        bias_here, sums, sums_stride, bounds[0], bounds[1], ahead, output_row_stride,
                    )  # fmt: skip
                else:
                    extents, hops = (y_stop - y_start, x_stop - x_start), (row_dilation * row_stride, column_hop)
                    store(scratch, _sum_alone(at, extents, hops, channel_stride, count, tap, taps_of_row, bias_here))
                if not is_direct or not is_whole:
                    place, beside = to + column * output_pixel_stride, add + column * residual_pixel_stride
                    _finish(
                        scratch, pixels, count,
                        (inner_activation, inner_alpha, inner_beta, activation, alpha, beta),
                        (residual, beside, residual_pixel_stride, residual_channel_stride, residual_kind),
                        (place, output_pixel_stride, output_channel_stride, output_kind),
                    )  # fmt: skip
                column += pixels * groups


@inlined
def _inside(first: int, dilation: int, window: int, extent: int) -> tuple[int, int]:
    """Which places of a window, `first + index * dilation`, are inside the source: first and end."""
    return max(0, (dilation - 1 - first) // dilation), min(window, (extent - first + dilation - 1) // dilation)


@inlined
def _group_at(column: int, start: int, stop: int, is_whole: bool, is_direct: bool) -> tuple[int, int, int]:
    """Outputs that are summed next: the first one's column, how many at a time, and how often.

    From start to stop windows are inside, and may be summed several at a time. The last group may overlap the one
    before: it computes the same values again.
    """
    if is_whole and start <= column < stop:
        if stop - column >= 8:
            return column, 8, (stop - column) // 8 if is_direct else 1
        if column + 1 < stop and stop - start >= 4:
            return min(column, stop - 4), 4, 1
    return column, 1, 1


@inlined
def _finish(sums: int, pixels: int, count: int, functions: Any, added: Any, results: Any) -> None:
    """Apply what follows the sums of neighbouring outputs, and write them."""
    inner, inner_alpha, inner_beta, outer, alpha, beta = functions
    residual, beside, residual_step, residual_stride, residual_kind = added
    place, step, stride, kind = results
    for pixel in range(pixels):
        value = activate(inner, load(sums + pixel * VECTOR_BYTES), inner_alpha, inner_beta)
        if residual != 0:
            value = value + read(beside + pixel * residual_step, residual_stride, residual_kind, count)
        write(place + pixel * step, stride, kind, activate(outer, value, alpha, beta), count)


@inlined
def _sum_alone(
    at: int, extents: Any, hops: Any, channel_stride: int, count: int, tap: int, taps_of_row: Any, bias: int
) -> Any:
    """The sum of one output, of channels at any stride: extents and bytes between rows and columns are given."""
    (rows, columns), (row_bytes, column_bytes), (window_columns, tap_bytes) = extents, hops, taps_of_row
    value = load(bias)
    for y in range(rows):
        for x in range(columns):
            here = read(at + y * row_bytes + x * column_bytes, channel_stride, FP32, count)
            value = multiply_add(here, load(tap + (y * window_columns + x) * tap_bytes), value)
    return value
