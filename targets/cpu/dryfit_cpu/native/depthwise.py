"""Depthwise convolution: each channel by its own window, a vector of channels at a time."""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu.codes import FP32
from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.memory import VECTOR_BYTES, load, read, stack_memory, store, write
from dryfit_cpu.compiler.vectors import LANES, maximum, minimum, multiply_add, splat
from dryfit_cpu.native.functions import activate

_INFINITY: Any = float32(float("inf"))
_PIXELS = 8
"""Neighbouring outputs that are summed at once: enough sums to keep both multipliers of a core busy."""


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
    # Outputs whose whole window is inside, from left to right: they are taken `_PIXELS` at a time.
    reach = (window_columns - 1) * column_dilation
    inside_start = (left + column_step - 1) // column_step
    inside_stop = min(columns, (source_columns - reach + left - 1) // column_step + 1)
    has_groups = channel_stride == 4 and inside_stop - inside_start >= _PIXELS
    is_direct = finishes == 0 and output_channel_stride == 4
    limits, unlimited = (splat(low), splat(high)), (splat(-_INFINITY), splat(_INFINITY))
    blocks = (channels + LANES - 1) // LANES
    total = images * rows * blocks
    for index in range(total * chunk // chunks, total * (chunk + 1) // chunks):
        line = index // blocks
        channel = (index - line * blocks) * LANES
        image = line // rows
        row = line - image * rows
        count = channels - channel
        first_row = row * row_step - top
        y_start, y_stop = _inside(first_row, row_dilation, window_rows, source_rows)
        start = source + image * image_stride + first_row * row_stride + channel * channel_stride
        to = output + image * output_image_stride + row * output_row_stride + channel * output_channel_stride
        add = residual + image * residual_image_stride + row * residual_row_stride + channel * residual_channel_stride
        first, taps = load(bias + channel * 4), weights + channel * 4
        column = 0
        while column < columns:
            pixels = 1
            if has_groups and count >= LANES and inside_start <= column < inside_stop:
                # The last group overlaps the one before: it computes the same values again.
                column = min(column, inside_stop - _PIXELS)
                pixels = _PIXELS
                sums, sums_stride, bounds = scratch, VECTOR_BYTES, unlimited
                if is_direct:
                    sums, sums_stride, bounds = to + column * output_pixel_stride, output_pixel_stride, limits
                arguments = (
                    sums, sums_stride, start + (column * column_step - left) * pixel_stride, column_step * pixel_stride,
                    row_dilation * row_stride, taps, tap_bytes, y_start, y_stop, first, bounds,
                )  # fmt: skip
                if window_columns == 3 and column_step == 1 and column_dilation == 1:
                    _sum_neighbours_of_three(*arguments)
                else:
                    _sum_neighbours(column_dilation * pixel_stride, window_columns, *arguments)
                if is_direct:
                    column += pixels
                    continue
            else:
                first_column = column * column_step - left
                value = _sum_alone(
                    start + first_column * pixel_stride, column_dilation * pixel_stride, row_dilation * row_stride,
                    channel_stride, count, taps, tap_bytes, window_columns,
                    (y_start, y_stop), _inside(first_column, column_dilation, window_columns, source_columns), first,
                )  # fmt: skip
                store(scratch, value)
            for pixel in range(pixels):
                value = activate(inner_activation, load(scratch + pixel * VECTOR_BYTES), inner_alpha, inner_beta)
                if residual != 0:
                    at = add + (column + pixel) * residual_pixel_stride
                    value = value + read(at, residual_channel_stride, residual_kind, count)
                value = activate(activation, value, alpha, beta)
                write(to + (column + pixel) * output_pixel_stride, output_channel_stride, output_kind, value, count)
            column += pixels


@inlined
def _inside(first: int, dilation: int, window: int, extent: int) -> tuple[int, int]:
    """Which places of a window, `first + index * dilation`, are inside the source: first and end."""
    return max(0, (dilation - 1 - first) // dilation), min(window, (extent - first + dilation - 1) // dilation)


@inlined
def _sum_alone(
    source: int,
    column_bytes: int,
    row_bytes: int,
    channel_stride: int,
    count: int,
    weights: int,
    tap_bytes: int,
    window_columns: int,
    rows: tuple[int, int],
    columns: tuple[int, int],
    first: Any,
) -> Any:
    """The sum of one output, over those rows and columns of its window that are inside the source."""
    value = first
    for y in range(rows[0], rows[1]):
        for x in range(columns[0], columns[1]):
            here = read(source + y * row_bytes + x * column_bytes, channel_stride, FP32, count)
            value = multiply_add(here, load(weights + (y * window_columns + x) * tap_bytes), value)
    return value


@inlined
def _sum_neighbours(
    column_bytes: int,
    window_columns: int,
    sums: int,
    sums_stride: int,
    source: int,
    step: int,
    row_bytes: int,
    weights: int,
    tap_bytes: int,
    y_start: int,
    y_stop: int,
    first: Any,
    limits: tuple[Any, Any],
) -> None:
    """The sums of `_PIXELS` outputs, `step` bytes apart in the source, which is dense FP32."""
    s0, s1, s2, s3, s4, s5, s6, s7 = first, first, first, first, first, first, first, first
    for y in range(y_start, y_stop):
        at = source + y * row_bytes
        tap = weights + y * window_columns * tap_bytes
        for _ in range(window_columns):
            w = load(tap)
            s0 = multiply_add(load(at), w, s0)
            s1 = multiply_add(load(at + step), w, s1)
            s2 = multiply_add(load(at + 2 * step), w, s2)
            s3 = multiply_add(load(at + 3 * step), w, s3)
            s4 = multiply_add(load(at + 4 * step), w, s4)
            s5 = multiply_add(load(at + 5 * step), w, s5)
            s6 = multiply_add(load(at + 6 * step), w, s6)
            s7 = multiply_add(load(at + 7 * step), w, s7)
            at += column_bytes
            tap += tap_bytes
    _store_neighbours(sums, sums_stride, limits, (s0, s1, s2, s3, s4, s5, s6, s7))


@inlined
def _sum_neighbours_of_three(
    sums: int,
    sums_stride: int,
    source: int,
    step: int,
    row_bytes: int,
    weights: int,
    tap_bytes: int,
    y_start: int,
    y_stop: int,
    first: Any,
    limits: tuple[Any, Any],
) -> None:
    """The same for windows of three neighbouring columns, of which each value is loaded once for three outputs."""
    s0, s1, s2, s3, s4, s5, s6, s7 = first, first, first, first, first, first, first, first
    for y in range(y_start, y_stop):
        at, tap = source + y * row_bytes, weights + y * 3 * tap_bytes
        w0, w1, w2 = load(tap), load(tap + tap_bytes), load(tap + 2 * tap_bytes)
        v0, v1, v2, v3, v4 = load(at), load(at + step), load(at + 2 * step), load(at + 3 * step), load(at + 4 * step)
        s0 = multiply_add(v2, w2, multiply_add(v1, w1, multiply_add(v0, w0, s0)))
        s1 = multiply_add(v3, w2, multiply_add(v2, w1, multiply_add(v1, w0, s1)))
        s2 = multiply_add(v4, w2, multiply_add(v3, w1, multiply_add(v2, w0, s2)))
        v5, v6, v7 = load(at + 5 * step), load(at + 6 * step), load(at + 7 * step)
        s3 = multiply_add(v5, w2, multiply_add(v4, w1, multiply_add(v3, w0, s3)))
        s4 = multiply_add(v6, w2, multiply_add(v5, w1, multiply_add(v4, w0, s4)))
        s5 = multiply_add(v7, w2, multiply_add(v6, w1, multiply_add(v5, w0, s5)))
        v8, v9 = load(at + 8 * step), load(at + 9 * step)
        s6 = multiply_add(v8, w2, multiply_add(v7, w1, multiply_add(v6, w0, s6)))
        s7 = multiply_add(v9, w2, multiply_add(v8, w1, multiply_add(v7, w0, s7)))
    _store_neighbours(sums, sums_stride, limits, (s0, s1, s2, s3, s4, s5, s6, s7))


@inlined
def _store_neighbours(to: int, stride: int, limits: tuple[Any, Any], sums: Any) -> None:
    s0, s1, s2, s3, s4, s5, s6, s7 = sums
    low, high = limits
    store(to, minimum(high, maximum(low, s0)))
    store(to + stride, minimum(high, maximum(low, s1)))
    store(to + 2 * stride, minimum(high, maximum(low, s2)))
    store(to + 3 * stride, minimum(high, maximum(low, s3)))
    store(to + 4 * stride, minimum(high, maximum(low, s4)))
    store(to + 5 * stride, minimum(high, maximum(low, s5)))
    store(to + 6 * stride, minimum(high, maximum(low, s6)))
    store(to + 7 * stride, minimum(high, maximum(low, s7)))
