"""Pooling: maxima and averages over windows, a vector of channels at a time.

INT8 images whose channels lie together are pooled as bytes, a block of channels at a time.
"""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu.codes import FP32, HALF_TO_EVEN, NONE
from dryfit_cpu.compiler.compilation import inlined, native, outlined
from dryfit_cpu.compiler.memory import STACK_BYTES, VECTOR_BYTES, load, load_int, read, stack_memory, store, write
from dryfit_cpu.compiler.vectors import LANES, maximum_or_nan, splat
from dryfit_cpu.compiler.window_terms import largest_of_windows, sum_any_windows
from dryfit_cpu.compiler.window_variants import TO_SCALED_SUMS
from dryfit_cpu.descriptors import Chunk, Function, Image, SampleSteps, WindowAxis, WordTable
from dryfit_cpu.native.functions import activate
from dryfit_cpu.native.indices import BLOCK_BYTES, blocks_of_line, inside, pixel, share
from dryfit_cpu.native.requantization import limited, rounded, write_limited

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
    # Padding is never read: the places that lie inside are counted before, for each axis. A maximum needs no border
    # value then, and a sum no zeros.
    # A unit of work is a row of outputs with all its channels; few rows are split by channels too.
    together = output.channels if output.images * output.rows >= _MANY_ROWS else _VECTORS * LANES
    parts = (output.channels + together - 1) // together
    hops = (
        window_images.dilation * source.image_stride,
        window_rows.dilation * source.row_stride,
        window_columns.dilation * source.pixel_stride,
    )
    is_plain = (
        source.kind == FP32 and source.channel_stride == 4 and output.kind == FP32 and output.channel_stride == 4
        and multiplier == 1.0 and function.kind == NONE and output.channels >= LANES
        and together >= output.channels and (is_average or window_columns.extent in (2, 3))
    )  # fmt: skip
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
        inner_start, inner_stop = 0, 0
        if is_plain and z_count == 1 and y_count > 0:
            # Most windows are inside: a run of these goes by itself.
            inner_start, inner_stop = _inner_columns(window_columns, source.columns, output.columns)
            run = (
                at_row + (inner_start * window_columns.step - window_columns.before) * source.pixel_stride,
                window_columns.step * source.pixel_stride,
                to + inner_start * output.pixel_stride, output.pixel_stride, inner_stop - inner_start, output.channels,
                window_columns.extent, hops[2], y_count, hops[1],
            )  # fmt: skip
            _pool_run(run, is_average, counted_images * counted_rows * window_columns.extent)
        for column in range(output.columns):
            if inner_start <= column < inner_stop:
                continue
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
    # Most windows are inside, which takes no division to see: of a few channels that is as much work as the window is.
    if first >= 0 and first + (window.extent - 1) * window.dilation < extent:
        return first, window.extent, window.extent
    start, stop = inside(first, window.dilation, window.extent, 0, extent)
    counted = stop - start
    if counts_padding:
        counted_start, counted_stop = inside(
            first, window.dilation, window.extent, -window.before, extent + window.behind
        )
        counted = counted_stop - counted_start
    return first + start * window.dilation, stop - start, counted


@inlined
def _inner_columns(window: WindowAxis, columns: int, outputs: int) -> tuple[int, int]:
    """The first output whose window is inside, and the end of these."""
    beyond = columns + window.before - (window.extent - 1) * window.dilation
    return (window.before + window.step - 1) // window.step, min(outputs, (beyond + window.step - 1) // window.step)


@inlined
def _pool_run(run: Any, is_average: int, counted: int) -> None:
    if is_average:
        _averages_of_run(*run, counted)
    else:
        _largest_of_run(*run)


@outlined
def _largest_of_run(
    at: int,
    step: int,
    to: int,
    output_step: int,
    pixels: int,
    channels: int,
    columns: int,
    hop: int,
    rows: int,
    row_hop: int,
) -> int:
    """The maxima of so many windows of two or three columns, of a vector of channels at least; returns how many."""
    vectors, last = (channels + LANES - 1) // LANES, 4 * (channels - LANES)
    for _ in range(pixels):
        for vector in range(vectors):
            # The last vector overlaps the one before, where channels do not fill it.
            channel = min(vector * VECTOR_BYTES, last)
            place = at + channel
            value = _largest_of_row(place, columns, hop)
            for _ in range(1, rows):
                place += row_hop
                value = maximum_or_nan(value, _largest_of_row(place, columns, hop))
            store(to + channel, value)
        at, to = at + step, to + output_step
    return pixels


# A function of its own: with that of maxima in one, averages take 1.7 times as long (AMD EPYC, Zen 4).
@outlined
def _averages_of_run(
    at: int,
    step: int,
    to: int,
    output_step: int,
    pixels: int,
    channels: int,
    columns: int,
    hop: int,
    rows: int,
    row_hop: int,
    counted: int,
) -> int:
    """The sums of so many windows, of a vector of channels at least, divided by a count; returns how many."""
    vectors, last = (channels + LANES - 1) // LANES, 4 * (channels - LANES)
    divisor = splat(float32(counted))
    for _ in range(pixels):
        for vector in range(vectors):
            channel = min(vector * VECTOR_BYTES, last)
            row, value = at + channel, splat(float32(0.0))
            for _ in range(rows):
                place = row
                for _ in range(columns):
                    value = value + load(place)
                    place += hop
                row += row_hop
            store(to + channel, value / divisor)
        at, to = at + step, to + output_step
    return pixels


@inlined
def _largest_of_row(at: int, columns: int, hop: int) -> Any:
    value = maximum_or_nan(load(at), load(at + hop))
    return value if columns == 2 else maximum_or_nan(value, load(at + 2 * hop))


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
    # `maximum_or_nan`, as ONNX and TensorRT carry NaN on: the instruction alone would drop it where it is the first
    # operand.
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


@native
def max_pool(
    chunk: Chunk,
    source: Image,
    outside: int,
    blocks: WordTable,
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
        # Bytes stay bytes: a maximum is one instruction for as many channels as a register has bytes. Places outside
        # are not left out either: they read -128, which is no larger than anything.
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
    blocks: WordTable,
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
            waiting = STACK_BYTES // (4 * width)
            for turn in range((output.columns + waiting - 1) // waiting):
                first = turn * waiting
                count = min(waiting, output.columns - first)
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
