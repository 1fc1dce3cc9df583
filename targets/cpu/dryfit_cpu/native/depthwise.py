"""Depthwise convolution: each channel by its own window, a vector of channels at a time."""

from __future__ import annotations

from typing import Any

from dryfit_cpu.codes import FP32
from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.memory import VECTOR_BYTES, load, read, stack_memory, store, write
from dryfit_cpu.compiler.vectors import LANES, multiply_add
from dryfit_cpu.native.functions import activate

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
    inner_activation: int,
    inner_alpha: float,
    inner_beta: float,
    activation: int,
    alpha: float,
    beta: float,
) -> None:
    """Sum over the window, plus bias, residual and activation; what is outside the input is left out.

    Weights are `[window rows, window columns, padded channels]`. Each output is summed in the order of the window,
    alone or with its neighbours.
    """
    scratch = stack_memory()
    tap_bytes = padded_channels * 4
    # Outputs whose whole window is inside, from left to right: they are taken `_PIXELS` at a time.
    reach = (window_columns - 1) * column_dilation
    inside_start = (left + column_step - 1) // column_step
    inside_stop = min(columns, (source_columns - reach + left - 1) // column_step + 1)
    has_groups = channel_stride == 4 and inside_stop - inside_start >= _PIXELS
    blocks = (channels + LANES - 1) // LANES
    total = images * rows * blocks
    for index in range(total * chunk // chunks, total * (chunk + 1) // chunks):
        line = index // blocks
        channel = (index - line * blocks) * LANES
        image = line // rows
        row = line - image * rows
        count = channels - channel
        first_row = row * row_step - top
        y_start = max(0, (row_dilation - 1 - first_row) // row_dilation)
        y_stop = min(window_rows, (source_rows - first_row + row_dilation - 1) // row_dilation)
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
                _sum_neighbours(
                    scratch, start + (column * column_step - left) * pixel_stride, column_step * pixel_stride,
                    row_dilation * row_stride, column_dilation * pixel_stride, taps, tap_bytes, y_start, y_stop,
                    window_columns, first,
                )  # fmt: skip
            else:
                first_column = column * column_step - left
                x_start = max(0, (column_dilation - 1 - first_column) // column_dilation)
                x_stop = min(window_columns, (source_columns - first_column + column_dilation - 1) // column_dilation)
                value = first
                for y in range(y_start, y_stop):
                    for x in range(x_start, x_stop):
                        at = start + y * row_dilation * row_stride + (first_column + x * column_dilation) * pixel_stride
                        w = load(taps + (y * window_columns + x) * tap_bytes)
                        value = multiply_add(read(at, channel_stride, FP32, count), w, value)
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
def _sum_neighbours(
    sums: int,
    source: int,
    step: int,
    row_bytes: int,
    column_bytes: int,
    weights: int,
    tap_bytes: int,
    y_start: int,
    y_stop: int,
    window_columns: int,
    first: Any,
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
    store(sums, s0)
    store(sums + VECTOR_BYTES, s1)
    store(sums + 2 * VECTOR_BYTES, s2)
    store(sums + 3 * VECTOR_BYTES, s3)
    store(sums + 4 * VECTOR_BYTES, s4)
    store(sums + 5 * VECTOR_BYTES, s5)
    store(sums + 6 * VECTOR_BYTES, s6)
    store(sums + 7 * VECTOR_BYTES, s7)
