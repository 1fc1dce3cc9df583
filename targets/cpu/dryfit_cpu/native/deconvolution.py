"""Deconvolution's second half: each output collects what the inputs' windows lay on it."""

from __future__ import annotations

from dryfit_cpu.codes import FP32
from dryfit_cpu.compiler.compilation import native
from dryfit_cpu.compiler.memory import load, read, write
from dryfit_cpu.compiler.vectors import LANES
from dryfit_cpu.native.functions import activate


@native
def collect(
    chunk: int,
    chunks: int,
    products: int,
    pixel_bytes: int,
    tap_bytes: int,
    weights: int,
    weight_bytes: int,
    source_rows: int,
    source_columns: int,
    bias: int,
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
    left: int,
    activation: int,
    alpha: float,
    beta: float,
) -> None:
    """Sum the products `[image, row, column, window row, window column, channel]` that fall on each output.

    A pixel has `pixel_bytes` of them, a place in the window `tap_bytes`. With `weights`, FP32 rows of `weight_bytes`
    for each place, what is given are the factors: each is multiplied when it is added. They are added in the order of
    the window, whoever computes them.
    """
    blocks = (channels + LANES - 1) // LANES
    total = images * rows * blocks
    for index in range(total * chunk // chunks, total * (chunk + 1) // chunks):
        line = index // blocks
        channel = (index - line * blocks) * LANES
        image = line // rows
        row = line - image * rows
        count = channels - channel
        first = products + image * source_rows * source_columns * pixel_bytes + channel * 4
        to = output + image * output_image_stride + row * output_row_stride + channel * output_channel_stride
        for column in range(columns):
            value = load(bias + channel * 4)
            for y in range(window_rows):
                at_row = row + top - y * row_dilation
                source_row = at_row // row_step
                if at_row < 0 or source_row >= source_rows or source_row * row_step != at_row:
                    continue
                for x in range(window_columns):
                    at_column = column + left - x * column_dilation
                    source_column = at_column // column_step
                    if at_column < 0 or source_column >= source_columns or source_column * column_step != at_column:
                        continue
                    pixel = source_row * source_columns + source_column
                    tap = y * window_columns + x
                    product = read(first + pixel * pixel_bytes + tap * tap_bytes, 4, FP32, count)
                    if weights != 0:
                        product = product * load(weights + tap * weight_bytes + channel * 4)
                    value = value + product
            value = activate(activation, value, alpha, beta)
            write(to + column * output_pixel_stride, output_channel_stride, output_kind, value, count)
