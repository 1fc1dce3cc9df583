"""Depthwise convolution, each channel by its own window, and convolution in groups of four channels.

Both go along rows of pixels, a vector of channels at a time.
"""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu.codes import FP32
from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.depthwise_block import GROUP_CHANNELS, WEIGHT_ROW_BYTES, grouped_block, sum_windows
from dryfit_cpu.compiler.memory import VECTOR_BYTES, load, read, stack_memory, store, write
from dryfit_cpu.compiler.vectors import LANES, multiply_add
from dryfit_cpu.descriptors import Chunk, Finish, Image, WindowAxis, WordTable
from dryfit_cpu.native.convolution import finish_pixel
from dryfit_cpu.native.functions import activate
from dryfit_cpu.native.indices import inside, pixel, share

_INFINITY: Any = float32(float("inf"))


@native
def depthwise(
    chunk: Chunk,
    source: Image,
    weights: int,
    bias: int,
    padded_channels: int,
    output: Image,
    residual: Image,
    window_rows: WindowAxis,
    window_columns: WindowAxis,
    strip: int,
    finish: Finish,
) -> None:
    """Sum over the window, plus bias, residual and activation; what is outside the input is left out.

    Weights are `[window rows, window columns, padded channels]`. Each output is summed in the order of the window,
    alone or with its neighbours. Where the finish is not bypassing the limits are all that follows the sums; else they
    go through a piece of stack.
    """
    scratch = stack_memory()
    tap_bytes = padded_channels * 4
    # Outputs whose columns are all inside, from left to right, are taken several at a time.
    step, dilation, left = window_columns.step, window_columns.dilation, window_columns.before
    last_inside = (source.columns - (window_columns.extent - 1) * dilation + left - 1) // step
    inner = ((left + step - 1) // step, min(output.columns, last_inside + 1))
    column_step, column_hop = step * source.pixel_stride, dilation * source.pixel_stride
    row_hop, window_row_bytes = window_rows.dilation * source.row_stride, window_columns.extent * tap_bytes
    # The rows below the window, which the next line of outputs of the same strip reads first.
    ahead = (window_rows.extent - 1) * row_hop + window_rows.step * source.row_stride
    shared = 0
    # Neighbours whose windows overlap share what they read: 4 outputs of a 3 x 3 window in steps of 1 read 6 columns,
    # not 12. The code for it is generated for the windows that networks have.
    if dilation == 1 and window_columns.extent in (3, 5) and step <= 2:
        shared = window_columns.extent * 4 + step
    is_direct = finish.bypasses == 0 and output.channel_stride == 4
    low, high = (finish.low, finish.high) if is_direct else (-_INFINITY, _INFINITY)
    blocks = (output.channels + LANES - 1) // LANES
    # Strips of rows for a vector of channels, not rows for all channels: the weights stay in registers or in the
    # first-level cache, and so do the rows that two windows share.
    strips = (output.rows + strip - 1) // strip
    for index in range(*share(chunk, output.images * strips * blocks)):
        line, channel = index // blocks, index % blocks * LANES
        image = line // strips
        count = output.channels - channel
        is_whole = source.channel_stride == 4 and count >= LANES
        bias_here, taps = bias + channel * 4, weights + channel * 4
        first_row_of_strip = (line - image * strips) * strip
        for row in range(first_row_of_strip, min(output.rows, first_row_of_strip + strip)):
            first_row = row * window_rows.step - window_rows.before
            y_start, y_stop = inside(first_row, window_rows.dilation, window_rows.extent, 0, source.rows)
            at_row = pixel(source, image, first_row, 0) + y_start * row_hop + channel * source.channel_stride
            tap_row = taps + y_start * window_row_bytes
            to = pixel(output, image, row, 0) + channel * output.channel_stride
            add = pixel(residual, image, row, 0) + channel * residual.channel_stride
            column = 0
            while column < output.columns:
                column, pixels, groups = _group_at(column, inner[0], inner[1], is_whole, is_direct)
                x_start, x_stop = 0, window_columns.extent
                if not inner[0] <= column < inner[1]:
                    first_column = column * step - left
                    x_start, x_stop = inside(first_column, dilation, window_columns.extent, 0, source.columns)
                sums, sums_stride = scratch, VECTOR_BYTES
                if is_direct and is_whole:
                    sums, sums_stride = to + column * output.pixel_stride, output.pixel_stride
                at = at_row + (column * step - left) * source.pixel_stride + x_start * column_hop
                tap = tap_row + x_start * tap_bytes
                if is_whole:
                    sum_windows(
                        pixels, shared if pixels > 1 else 0, groups, at, column_step, column_hop, row_hop, tap,
                        tap_bytes, window_row_bytes, y_stop - y_start, x_stop - x_start, bias_here, sums, sums_stride,
                        low, high, ahead, output.row_stride,
                    )  # fmt: skip
                else:
                    extents, hops = (y_stop - y_start, x_stop - x_start), (row_hop, column_hop)
                    of_row = (tap, window_columns.extent, tap_bytes)
                    store(scratch, _sum_alone(at, extents, hops, source.channel_stride, count, of_row, bias_here))
                if not is_direct or not is_whole:
                    place, beside = to + column * output.pixel_stride, add + column * residual.pixel_stride
                    _finish(scratch, pixels, count, finish, beside, residual, place, output)
                column += pixels * groups


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
def _finish(
    sums: int, pixels: int, count: int, finish: Finish, beside: int, residual: Image, place: int, output: Image
) -> None:
    """Apply what follows the sums of neighbouring outputs, and write them."""
    for one in range(pixels):
        value = activate(finish.inner, load(sums + one * VECTOR_BYTES))
        if residual.address != 0:
            added = beside + one * residual.pixel_stride
            value = value + read(added, residual.channel_stride, residual.kind, count)
        to = place + one * output.pixel_stride
        write(to, output.channel_stride, output.kind, activate(finish.outer, value), count)


@inlined
def _sum_alone(at: int, extents: Any, hops: Any, channel_stride: int, count: int, taps: Any, bias: int) -> Any:
    """The sum of one output, of channels at any stride: extents and bytes between rows and columns are given."""
    (rows, columns), (row_bytes, column_bytes), (tap, window_columns, tap_bytes) = extents, hops, taps
    value = load(bias)
    for y in range(rows):
        for x in range(columns):
            here = read(at + y * row_bytes + x * column_bytes, channel_stride, FP32, count)
            value = multiply_add(here, load(tap + (y * window_columns + x) * tap_bytes), value)
    return value


# A block has a sum a pixel, and each weight that is loaded serves all of its pixels; seven, as most images of networks
# have rows of 7, 14, 28 or 56. With vectors of four there are sixteen registers or fewer.
_GROUP_PIXELS = 7 if LANES > 4 else 4
_PACKED_CHANNELS = WEIGHT_ROW_BYTES // 4

group_block = grouped_block(_GROUP_PIXELS)
group_pixel = grouped_block(1)


@native
def convolve_groups(
    chunk: Chunk,
    input: Image,
    places: WordTable,
    weights: int,
    bias: int,
    output: Image,
    residual: Image,
    finish: Finish,
) -> None:
    """Sums over windows, plus bias, residual and activation; the last pixels of a row may be computed twice.

    Input strides are from one output to the next. Weights are `[channels / 16, places, 4, 16]`. Every output is summed
    in the order of the places and of its group's inputs.
    """
    sums = stack_memory()
    output_size, residual_size = 4 >> (output.kind & 3), 4 >> (residual.kind & 3)
    for line in range(*share(chunk, output.images * output.rows)):
        image = line // output.rows
        row = line - image * output.rows
        from_row, to_row = pixel(input, image, row, 0), pixel(output, image, row, 0)
        add_row = pixel(residual, image, row, 0)
        # Channels outside the pixels of a row: a vector's weights, four for each of its places, stay in the first-level
        # cache while the row goes by, and a row of a few channels is short enough to stay there for all of them.
        for channel in range(0, output.channels, LANES):
            packed = channel // _PACKED_CHANNELS
            columns_of = weights + packed * places.rows * GROUP_CHANNELS * WEIGHT_ROW_BYTES
            columns_of += (channel - packed * _PACKED_CHANNELS) * 4
            at, start = from_row + channel * 4, bias + channel * 4
            done = 0
            while done < output.columns:
                first, count = done, 1
                if output.columns >= _GROUP_PIXELS:
                    first, count = min(done, output.columns - _GROUP_PIXELS), _GROUP_PIXELS
                    group_block(
                        at + first * input.pixel_stride, input.pixel_stride, places.address, places.rows, columns_of,
                        start, sums,
                    )  # fmt: skip
                else:
                    group_pixel(
                        at + first * input.pixel_stride, input.pixel_stride, places.address, places.rows, columns_of,
                        start, sums,
                    )  # fmt: skip
                for place in range(count):
                    to = to_row + (first + place) * output.pixel_stride + channel * output_size
                    add = 0
                    if residual.address != 0:
                        add = add_row + (first + place) * residual.pixel_stride + channel * residual_size
                    finish_pixel(sums + place * 4 * LANES, to, add, LANES, output.kind, residual.kind, finish)
                done = first + count
