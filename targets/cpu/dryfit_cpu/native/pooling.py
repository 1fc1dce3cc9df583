"""Pooling: maxima and averages over windows, a vector of channels at a time."""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu.codes import FP32, HALF_TO_EVEN
from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.memory import VECTOR_BYTES, load, read, stack_memory, store, write
from dryfit_cpu.compiler.vectors import LANES, maximum_or_nan, splat
from dryfit_cpu.native.functions import activate
from dryfit_cpu.native.requantization import limited, rounded

_LOWEST: Any = float32(-128.0)
_HIGHEST: Any = float32(127.0)
_VECTORS = 4
"""Vectors of channels whose windows are walked together."""
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
    source_zero: float,
    zero_point: float,
) -> None:
    """The maximum, or the sum divided by the count, of each window; padding is in no maximum and adds nothing.

    An average counts the places inside the input, and with `counts_padding` those in its padding too. INT8 results are
    in the units that the multiplier gives, and rounded after the activation. Zero points are 0 but for INT8.
    """
    scratch = stack_memory()
    # A unit of work is a row of outputs with all its channels; few rows are split by channels too.
    together = channels if images * rows >= _MANY_ROWS else _VECTORS * LANES
    parts = (channels + together - 1) // together
    total = images * rows * parts
    for index in range(total * chunk // chunks, total * (chunk + 1) // chunks):
        line = index // parts
        first_channel = (index - line * parts) * together
        last_channel = min(channels, first_channel + together)
        image = line // rows
        row = line - image * rows
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
            x0, x1 = x_start, x_stop
            if counts_padding:
                x0, x1 = inside(first_column, column_dilation, window_columns, -left, source_columns + right)
            hop, row_hop = column_dilation * pixel_stride, row_dilation * row_stride
            window = source + image * image_stride + (first_row + y_start * row_dilation) * row_stride
            window += (first_column + x_start * column_dilation) * pixel_stride
            shape = (y_stop - y_start, x_stop - x_start, row_hop, hop)
            zeros = float32(shape[0] * shape[1] if is_average else 1) * float32(source_zero)
            channel = first_channel
            while channel < last_channel:
                count = channels - channel
                at = window + channel * channel_stride
                vectors = 1
                if kind == FP32 and channel_stride == 4 and last_channel - channel >= _VECTORS * LANES:
                    vectors = _VECTORS
                    _pool_vectors(at, shape, is_average, scratch)
                else:
                    value = splat(float32(0.0)) if is_average else splat(float32(float("-inf")))
                    for y in range(shape[0]):
                        for x in range(shape[1]):
                            here = read(at + y * row_hop + x * hop, channel_stride, kind, count)
                            value = value + here if is_average else maximum_or_nan(value, here)
                    store(scratch, value)
                for vector in range(vectors):
                    value = load(scratch + vector * VECTOR_BYTES)
                    value = value - splat(zeros)
                    if is_average:
                        value = value / splat(float32(counted_rows * (x1 - x0)))
                    value = activate(activation, value * splat(multiplier), alpha, beta)
                    place = to + column * output_pixel_stride + (channel + vector * LANES) * output_channel_stride
                    if rounding != HALF_TO_EVEN or zero_point != 0.0:
                        value = _on_grid(value, rounding, zero_point)
                    write(place, output_channel_stride, output_kind, value, count - vector * LANES)
                channel += vectors * LANES


@inlined
def _on_grid(value: Any, rounding: int, zero_point: float) -> Any:
    """INT8 values by a rounding mode, with a zero point."""
    value = limited(value, _LOWEST - float32(zero_point), _HIGHEST - float32(zero_point))
    return rounded(value, rounding) + splat(zero_point)


@inlined
def _pool_vectors(at: int, shape: Any, is_average: int, scratch: int) -> None:
    """Maxima or sums of a window, for four vectors of channels that lie together."""
    rows, columns, row_hop, hop = shape
    first = splat(float32(0.0)) if is_average else splat(float32(float("-inf")))
    a, b, c, d = first, first, first, first
    for _ in range(rows):
        place = at
        if is_average:
            for _ in range(columns):
                a, b = a + load(place), b + load(place + VECTOR_BYTES)
                c, d = c + load(place + 2 * VECTOR_BYTES), d + load(place + 3 * VECTOR_BYTES)
                place += hop
        else:
            for _ in range(columns):
                a, b = maximum_or_nan(a, load(place)), maximum_or_nan(b, load(place + VECTOR_BYTES))
                c = maximum_or_nan(c, load(place + 2 * VECTOR_BYTES))
                d = maximum_or_nan(d, load(place + 3 * VECTOR_BYTES))
                place += hop
        at += row_hop
    store(scratch, a)
    store(scratch + VECTOR_BYTES, b)
    store(scratch + 2 * VECTOR_BYTES, c)
    store(scratch + 3 * VECTOR_BYTES, d)


@inlined
def inside(first: int, dilation: int, window: int, start: int, stop: int) -> tuple[int, int]:
    """Which places of a window, `first + index * dilation`, lie from `start` to before `stop`: first and end."""
    begin = max(0, (start - first + dilation - 1) // dilation)
    return begin, max(begin, min(window, (stop - first + dilation - 1) // dilation))
