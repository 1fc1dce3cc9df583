"""Pooling: maxima and averages over windows, a vector of channels at a time."""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu.codes import FP32, HALF_TO_EVEN
from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.memory import VECTOR_BYTES, load, read, stack_memory, store, write
from dryfit_cpu.compiler.vectors import LANES, maximum_or_nan, splat
from dryfit_cpu.descriptors import Chunk, Function, Image, WindowAxis
from dryfit_cpu.native.activations import activate
from dryfit_cpu.native.indices import inside, pixel, share
from dryfit_cpu.native.requantization import limited, rounded

_LOWEST: Any = float32(-128.0)
_HIGHEST: Any = float32(127.0)
_VECTORS = 4
"""Vectors of channels whose windows are walked together: one alone would wait four cycles for each sum."""
_MANY_ROWS = 16
"""Rows of outputs that are enough work for all threads."""


@native
def pool(
    chunk: Chunk,
    source: Image,
    output: Image,
    window_images: WindowAxis,
    window_rows: WindowAxis,
    window_columns: WindowAxis,
    is_average: int,
    counts_padding: int,
    multiplier: float,
    function: Function,
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
    together = output.channels if output.images * output.rows >= _MANY_ROWS else _VECTORS * LANES
    parts = (output.channels + together - 1) // together
    hops = (
        window_images.dilation * source.image_stride,
        window_rows.dilation * source.row_stride,
        window_columns.dilation * source.pixel_stride,
    )
    for index in range(*share(chunk, output.images * output.rows * parts)):
        line = index // parts
        first_channel = (index - line * parts) * together
        last_channel = min(output.channels, first_channel + together)
        image = line // output.rows
        row = line - image * output.rows
        to = pixel(output, image, row, 0)
        z, z_count, counted_images = _places(image, window_images, source.images, counts_padding)
        y, y_count, counted_rows = _places(row, window_rows, source.rows, counts_padding)
        at_row = pixel(source, z, y, 0)
        for column in range(output.columns):
            x, x_count, counted = _places(column, window_columns, source.columns, counts_padding)
            window = at_row + x * source.pixel_stride
            extents = (z_count, y_count, x_count)
            # The zero point of a sum is there once for each place inside: padding adds 0, not the zero point.
            zeros = float32(z_count * y_count * x_count if is_average else 1) * float32(source_zero)
            channel = first_channel
            while channel < last_channel:
                count = output.channels - channel
                at = window + channel * source.channel_stride
                vectors = 1
                if source.kind == FP32 and source.channel_stride == 4 and last_channel - channel >= _VECTORS * LANES:
                    vectors = _VECTORS
                    _pool_vectors(at, extents, hops, is_average, scratch)
                else:
                    value = splat(float32(0.0)) if is_average else splat(float32(float("-inf")))
                    for i in range(z_count):
                        for j in range(y_count):
                            for k in range(x_count):
                                here = at + i * hops[0] + j * hops[1] + k * hops[2]
                                term = read(here, source.channel_stride, source.kind, count)
                                value = value + term if is_average else maximum_or_nan(value, term)
                    store(scratch, value)
                for vector in range(vectors):
                    value = load(scratch + vector * VECTOR_BYTES)
                    value = value - splat(zeros)
                    if is_average:
                        value = value / splat(float32(counted_images * counted_rows * counted))
                    value = activate(function, value * splat(multiplier))
                    place = to + column * output.pixel_stride + (channel + vector * LANES) * output.channel_stride
                    if rounding != HALF_TO_EVEN or zero_point != 0.0:
                        value = _on_grid(value, rounding, zero_point)
                    write(place, output.channel_stride, output.kind, value, count - vector * LANES)
                channel += vectors * LANES


@inlined
def _places(index: int, window: WindowAxis, extent: int, counts_padding: int) -> tuple[int, int, int]:
    """Of an output's window along an axis the first place inside, how many are, and how many an average counts."""
    first = index * window.step - window.before
    start, stop = inside(first, window.dilation, window.extent, 0, extent)
    counted = stop - start
    if counts_padding:
        counted_start, counted_stop = inside(
            first, window.dilation, window.extent, -window.before, extent + window.behind
        )
        counted = counted_stop - counted_start
    return first + start * window.dilation, stop - start, counted


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
