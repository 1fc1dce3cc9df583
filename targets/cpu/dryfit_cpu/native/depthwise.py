"""Depthwise convolution, each channel by its own window, and convolution in groups of four channels.

Both go along rows of pixels, a block or vector of channels at a time.
"""

from __future__ import annotations

from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.depthwise_block import GROUP_CHANNELS, WEIGHT_ROW_BYTES, grouped_block, sum_windows
from dryfit_cpu.compiler.memory import STACK_BYTES, load, load_int, read, stack_memory, write
from dryfit_cpu.compiler.row_pairs import sum_window_pairs
from dryfit_cpu.compiler.vectors import LANES
from dryfit_cpu.compiler.window_variants import PAIR_ROWS, PAIRED_NUMBERS, PAIRED_WIDTH
from dryfit_cpu.descriptors import Chunk, Finish, Image, WindowAxis, WordTable
from dryfit_cpu.native.convolution import finish_pixel, finish_sums
from dryfit_cpu.native.functions import activate
from dryfit_cpu.native.indices import BLOCK_BYTES, inside, pixel, share


@native
def depthwise(
    chunk: Chunk,
    source: Image,
    outside: int,
    blocks: WordTable,
    output: Image,
    residual: Image,
    window_rows: WindowAxis,
    window_columns: WindowAxis,
    strip: int,
    finish: Finish,
) -> None:
    """Sum over the window, plus bias, residual and activation; padding is zeros, which are read from `outside`.

    The source's channels lie together, and may be read beyond the last one of the last block. Each output is summed in
    the order of the window's columns, whatever the strips and chunks are. Blocks are described in
    `compiler/depthwise_block.py`. Where the finish is not bypassing the limits are all that follows the sums; else they
    go through a piece of stack.
    """
    scratch = stack_memory()
    row_hop, left = window_rows.dilation * source.row_stride, window_columns.before
    # A piece of work is a strip of rows and a block of channels: what one row of outputs reads, the next one finds in
    # the first-level cache, unless a strip is one row.
    strips = (output.rows + strip - 1) // strip
    pairs = finish.bypasses == 0 and window_rows.step == window_columns.step and window_rows.dilation == 1
    for index in range(*share(chunk, output.images * strips * blocks.rows)):
        line = index // blocks.rows
        block = blocks.address + (index - line * blocks.rows) * BLOCK_BYTES
        channel, width = load_int(block), load_int(block + 8)
        number, panel = load_int(block + 16), load_int(block + 24)
        image = line // strips
        first = (line - image * strips) * strip
        row, last = first, min(output.rows, first + strip)
        while row < last:
            first_row = row * window_rows.step - window_rows.before
            at = pixel(source, image, first_row, 0) + channel * 4
            to = pixel(output, image, row, 0) + channel * output.channel_stride
            if pairs and number < PAIRED_NUMBERS and width == PAIRED_WIDTH and row + 1 < last:
                begin_row, end_row = inside(first_row, 1, window_rows.extent + window_rows.step, 0, source.rows)
                sum_window_pairs(
                    number, at, row_hop, begin_row, end_row, -left, source.columns, source.pixel_stride, outside,
                    panel, output.columns, to, output.pixel_stride, 0, window_rows.extent, window_columns.extent,
                    window_columns.step, window_columns.dilation, output.row_stride,
                )  # fmt: skip
                row += PAIR_ROWS
                continue
            begin_row, end_row = inside(first_row, window_rows.dilation, window_rows.extent, 0, source.rows)
            row += 1
            if finish.bypasses == 0:
                sum_windows(
                    number, at, row_hop, begin_row, end_row, -left, source.columns, source.pixel_stride, outside,
                    panel, output.columns, to, output.pixel_stride, 0, window_rows.extent, window_columns.extent,
                    window_columns.step, window_columns.dilation,
                )  # fmt: skip
                continue
            add = pixel(residual, image, row - 1, 0) + channel * residual.channel_stride
            # As many outputs at a time as their sums fit the stack: each time the window starts anew, and reads columns
            # that it has read before.
            waiting = STACK_BYTES // (4 * width)
            for turn in range((output.columns + waiting - 1) // waiting):
                column = turn * waiting
                pixels = min(waiting, output.columns - column)
                sum_windows(
                    number, at, row_hop, begin_row, end_row, column * window_columns.step - left, source.columns,
                    source.pixel_stride, outside, panel, pixels, scratch, 4 * width, 0, window_rows.extent,
                    window_columns.extent, window_columns.step, window_columns.dilation,
                )  # fmt: skip
                finish_sums(finish, residual.address != 0, scratch, pixels * width)
                for place in range(pixels):
                    _finish(
                        scratch + place * width * 4, min(width, output.channels - channel), finish,
                        add + (column + place) * residual.pixel_stride, residual,
                        to + (column + place) * output.pixel_stride, output,
                    )  # fmt: skip


@inlined
def _finish(sums: int, channels: int, finish: Finish, beside: int, residual: Image, place: int, output: Image) -> None:
    """Apply to an output what follows behind `finish_sums`, and write it."""
    for lane in range(0, channels, LANES):
        count = channels - lane
        value = load(sums + lane * 4)
        if residual.address != 0:
            added = beside + lane * residual.channel_stride
            value = activate(finish.outer, value + read(added, residual.channel_stride, residual.kind, count))
        to = place + lane * output.channel_stride
        write(to, output.channel_stride, output.kind, value, count)


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
                finish_sums(finish, residual.address != 0, sums, count * LANES)
                for place in range(count):
                    to = to_row + (first + place) * output.pixel_stride + channel * output_size
                    add = 0
                    if residual.address != 0:
                        add = add_row + (first + place) * residual.pixel_stride + channel * residual_size
                    finish_pixel(sums + place * 4 * LANES, to, add, LANES, output.kind, residual.kind, finish)
                done = first + count
