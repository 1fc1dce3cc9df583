"""Convolution in groups of four channels, over rows of pixels and vectors of channels."""

from __future__ import annotations

from dryfit_cpu.compiler.compilation import native
from dryfit_cpu.compiler.grouped_block import GROUP_CHANNELS, WEIGHT_ROW_BYTES, grouped_block
from dryfit_cpu.compiler.memory import stack_memory
from dryfit_cpu.compiler.vectors import LANES
from dryfit_cpu.descriptors import Chunk, Finish, Image, Table
from dryfit_cpu.native.convolution import finish_pixel
from dryfit_cpu.native.indices import pixel, share

# A block has a sum a pixel, and each weight that is loaded serves all of its pixels; seven, as most images of networks
# have rows of 7, 14, 28 or 56. With vectors of four there are sixteen registers or fewer.
_PIXELS = 7 if LANES > 4 else 4
_PACKED_CHANNELS = WEIGHT_ROW_BYTES // 4

block_whole = grouped_block(_PIXELS)
block_one = grouped_block(1)


@native
def convolve(
    chunk: Chunk,
    input: Image,
    places: Table,
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
                if output.columns >= _PIXELS:
                    first, count = min(done, output.columns - _PIXELS), _PIXELS
                    block_whole(
                        at + first * input.pixel_stride, input.pixel_stride, places.address, places.rows, columns_of,
                        start, sums,
                    )  # fmt: skip
                else:
                    block_one(
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
