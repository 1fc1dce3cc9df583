"""Convolution in groups of four channels, over rows of pixels and vectors of channels."""

from __future__ import annotations

from dryfit_cpu.compiler.compilation import native
from dryfit_cpu.compiler.grouped_block import GROUP_CHANNELS, WEIGHT_ROW_BYTES, grouped_block
from dryfit_cpu.compiler.memory import stack_memory
from dryfit_cpu.compiler.vectors import LANES
from dryfit_cpu.native.convolution import finish_pixel

_PIXELS = 7 if LANES > 4 else 4
_PACKED_CHANNELS = WEIGHT_ROW_BYTES // 4

block_whole = grouped_block(_PIXELS)
block_one = grouped_block(1)


@native
def convolve(
    chunk: int,
    chunks: int,
    input: int,
    image_stride: int,
    row_stride: int,
    pixel_stride: int,
    places: int,
    place_count: int,
    weights: int,
    bias: int,
    output: int,
    output_image_stride: int,
    output_row_stride: int,
    output_pixel_stride: int,
    output_kind: int,
    residual: int,
    residual_image_stride: int,
    residual_row_stride: int,
    residual_pixel_stride: int,
    residual_kind: int,
    images: int,
    rows: int,
    columns: int,
    channels: int,
    inner_activation: int,
    inner_alpha: float,
    inner_beta: float,
    activation: int,
    alpha: float,
    beta: float,
) -> None:
    """Sums over windows, plus bias, residual and activation; the last pixels of a row may be computed twice.

    Input strides are from one output to the next. Weights are `[channels / 16, places, 4, 16]`. Every output is summed
    in the order of the places and of its group's inputs.
    """
    sums = stack_memory()
    output_size, residual_size = 4 >> (output_kind & 3), 4 >> (residual_kind & 3)
    for line in range(images * rows * chunk // chunks, images * rows * (chunk + 1) // chunks):
        image = line // rows
        row = line - image * rows
        from_row = input + image * image_stride + row * row_stride
        to_row = output + image * output_image_stride + row * output_row_stride
        add_row = residual + image * residual_image_stride + row * residual_row_stride
        for channel in range(0, channels, LANES):
            packed = channel // _PACKED_CHANNELS
            columns_of = weights + packed * place_count * GROUP_CHANNELS * WEIGHT_ROW_BYTES
            columns_of += (channel - packed * _PACKED_CHANNELS) * 4
            at, start = from_row + channel * 4, bias + channel * 4
            done = 0
            while done < columns:
                first, count = done, 1
                if columns >= _PIXELS:
                    first, count = min(done, columns - _PIXELS), _PIXELS
                    block_whole(at + first * pixel_stride, pixel_stride, places, place_count, columns_of, start, sums)
                else:
                    block_one(at + first * pixel_stride, pixel_stride, places, place_count, columns_of, start, sums)
                for pixel in range(count):
                    to = to_row + (first + pixel) * output_pixel_stride + channel * output_size
                    add = 0
                    if residual != 0:
                        add = add_row + (first + pixel) * residual_pixel_stride + channel * residual_size
                    finish_pixel(
                        sums + pixel * 4 * LANES, to, add, LANES, output_kind, residual_kind,
                        (inner_activation, inner_alpha, inner_beta), (activation, alpha, beta),
                    )  # fmt: skip
                done = first + count
