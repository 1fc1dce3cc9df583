"""Pooling: maxima and averages over windows, a vector of channels at a time."""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu.codes import FP32, HALF_TO_EVEN
from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.memory import load, read, write
from dryfit_cpu.compiler.vectors import LANES, maximum_or_nan, splat
from dryfit_cpu.native.functions import activate
from dryfit_cpu.native.requantization import limited, rounded

_LOWEST: Any = float32(-128.0)
_HIGHEST: Any = float32(127.0)
_MANY_ROWS = 16
"""Rows of outputs that are enough work for all threads."""


@native
def pool(
    chunk: int,
    chunks: int,
    source: int,
    image_stride: int,
    row_stride: int,
    pixel_stride: int,
    channel_stride: int,
    kind: int,
    source_rows: int,
    source_columns: int,
    output: int,
    output_image_stride: int,
    output_row_stride: int,
    output_pixel_stride: int,
    output_channel_stride: int,
    output_kind: int,
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
    bottom: int,
    left: int,
    right: int,
    is_average: int,
    counts_padding: int,
    multiplier: float,
    activation: int,
    alpha: float,
    beta: float,
    rounding: int,
) -> None:
    """The maximum, or the sum divided by the count, of each window; padding is in no maximum and adds nothing.

    An average counts the places inside the input, and with `counts_padding` those in its padding too. INT8 results are
    in the units that the multiplier gives, and rounded after the activation.
    """
    # A unit of work is a row of outputs with all its channels; few rows are split by channels too.
    together = channels if images * rows >= _MANY_ROWS else LANES
    parts = (channels + together - 1) // together
    total = images * rows * parts
    for index in range(total * chunk // chunks, total * (chunk + 1) // chunks):
        line = index // parts
        first_channel = (index - line * parts) * together
        last_channel = min(channels, first_channel + together)
        image = line // rows
        row = line - image * rows
        image_at = source + image * image_stride
        to = output + image * output_image_stride + row * output_row_stride
        first_row = row * row_step - top
        y_start, y_stop = inside(first_row, row_dilation, window_rows, 0, source_rows)
        counted_rows = y_stop - y_start
        if counts_padding:
            y0, y1 = inside(first_row, row_dilation, window_rows, -top, source_rows + bottom)
            counted_rows = y1 - y0
        for column in range(columns):
            first_column = column * column_step - left
            x_start, x_stop = inside(first_column, column_dilation, window_columns, 0, source_columns)
            counted = counted_rows * (x_stop - x_start)
            if counts_padding:
                x0, x1 = inside(first_column, column_dilation, window_columns, -left, source_columns + right)
                counted = counted_rows * (x1 - x0)
            for channel in range(first_channel, last_channel, LANES):
                count = channels - channel
                is_dense = kind == FP32 and channel_stride == 4 and count >= LANES
                value = splat(float32(0.0)) if is_average else splat(float32(float("-inf")))
                at_channel = image_at + channel * channel_stride + first_column * pixel_stride
                for y in range(y_start, y_stop):
                    at = at_channel + (first_row + y * row_dilation) * row_stride
                    for x in range(x_start, x_stop):
                        place = at + x * column_dilation * pixel_stride
                        here = load(place) if is_dense else read(place, channel_stride, kind, count)
                        value = value + here if is_average else maximum_or_nan(value, here)
                if is_average:
                    value = value / splat(float32(counted))
                value = activate(activation, value * splat(multiplier), alpha, beta)
                place = to + column * output_pixel_stride + channel * output_channel_stride
                if rounding != HALF_TO_EVEN:
                    value = rounded(limited(value, _LOWEST, _HIGHEST), rounding)
                write(place, output_channel_stride, output_kind, value, count)


@inlined
def inside(first: int, dilation: int, window: int, start: int, stop: int) -> tuple[int, int]:
    """Which places of a window, `first + index * dilation`, lie from `start` to before `stop`: first and end."""
    begin = max(0, (start - first + dilation - 1) // dilation)
    return begin, max(begin, min(window, (stop - first + dilation - 1) // dilation))
