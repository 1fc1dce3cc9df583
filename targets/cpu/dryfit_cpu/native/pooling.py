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
    source_images: int,
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
    window_images: int,
    window_rows: int,
    window_columns: int,
    image_step: int,
    row_step: int,
    column_step: int,
    image_dilation: int,
    row_dilation: int,
    column_dilation: int,
    front: int,
    back: int,
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

    A window has one image of a batch, or several where these are the slices of a volume. An average counts the places
    inside the input, and with `counts_padding` those in its padding too. INT8 results are in the units that the
    multiplier gives, and rounded after the activation. Zero points are 0 but for INT8.
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
        first_image, first_row = image * image_step - front, row * row_step - top
        z, z_count, counted_images = _places(
            first_image, image_dilation, window_images, source_images, front, back, counts_padding
        )
        y, y_count, counted_rows = _places(
            first_row, row_dilation, window_rows, source_rows, top, bottom, counts_padding
        )
        at_row = source + (first_image + z * image_dilation) * image_stride
        at_row += (first_row + y * row_dilation) * row_stride
        hops = (image_dilation * image_stride, row_dilation * row_stride, column_dilation * pixel_stride)
        for column in range(columns):
            first_column = column * column_step - left
            x, x_count, counted = _places(
                first_column, column_dilation, window_columns, source_columns, left, right, counts_padding
            )
            window = at_row + (first_column + x * column_dilation) * pixel_stride
            extents = (z_count, y_count, x_count)
            zeros = float32(z_count * y_count * x_count if is_average else 1) * float32(source_zero)
            channel = first_channel
            while channel < last_channel:
                count = channels - channel
                at = window + channel * channel_stride
                vectors = 1
                if kind == FP32 and channel_stride == 4 and last_channel - channel >= _VECTORS * LANES:
                    vectors = _VECTORS
                    _pool_vectors(at, extents, hops, is_average, scratch)
                else:
                    value = splat(float32(0.0)) if is_average else splat(float32(float("-inf")))
                    for i in range(z_count):
                        for j in range(y_count):
                            for k in range(x_count):
                                here = at + i * hops[0] + j * hops[1] + k * hops[2]
                                term = read(here, channel_stride, kind, count)
                                value = value + term if is_average else maximum_or_nan(value, term)
                    store(scratch, value)
                for vector in range(vectors):
                    value = load(scratch + vector * VECTOR_BYTES)
                    value = value - splat(zeros)
                    if is_average:
                        value = value / splat(float32(counted_images * counted_rows * counted))
                    value = activate(activation, value * splat(multiplier), alpha, beta)
                    place = to + column * output_pixel_stride + (channel + vector * LANES) * output_channel_stride
                    if rounding != HALF_TO_EVEN or zero_point != 0.0:
                        value = _on_grid(value, rounding, zero_point)
                    write(place, output_channel_stride, output_kind, value, count - vector * LANES)
                channel += vectors * LANES


@inlined
def _places(
    first: int, dilation: int, window: int, extent: int, before: int, behind: int, counts_padding: int
) -> tuple[int, int, int]:
    """Of a window's places along an axis the first inside the input, how many are, and how many an average counts."""
    start, stop = inside(first, dilation, window, 0, extent)
    if counts_padding:
        counted_start, counted_stop = inside(first, dilation, window, -before, extent + behind)
        return start, stop - start, counted_stop - counted_start
    return start, stop - start, stop - start


@inlined
def _on_grid(value: Any, rounding: int, zero_point: float) -> Any:
    """INT8 values by a rounding mode, with a zero point."""
    value = limited(value, _LOWEST - float32(zero_point), _HIGHEST - float32(zero_point))
    return rounded(value, rounding) + splat(zero_point)


@inlined
def _pool_vectors(at: int, extents: Any, hops: Any, is_average: int, scratch: int) -> None:
    """Maxima or sums of a window, for four vectors of channels that lie together."""
    images, rows, columns = extents
    image_hop, row_hop, hop = hops
    first = splat(float32(0.0)) if is_average else splat(float32(float("-inf")))
    a, b, c, d = first, first, first, first
    for _ in range(images):
        row = at
        for _ in range(rows):
            place = row
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
            row += row_hop
        at += image_hop
    store(scratch, a)
    store(scratch + VECTOR_BYTES, b)
    store(scratch + 2 * VECTOR_BYTES, c)
    store(scratch + 3 * VECTOR_BYTES, d)


@inlined
def inside(first: int, dilation: int, window: int, start: int, stop: int) -> tuple[int, int]:
    """Which places of a window, `first + index * dilation`, lie from `start` to before `stop`: first and end."""
    begin = max(0, (start - first + dilation - 1) // dilation)
    return begin, max(begin, min(window, (stop - first + dilation - 1) // dilation))
