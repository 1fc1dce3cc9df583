"""Deconvolution's second half: each output collects what the inputs' windows lay on it."""

from __future__ import annotations

from dryfit_cpu.codes import FP32
from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.memory import load, read, write
from dryfit_cpu.compiler.vectors import LANES
from dryfit_cpu.native.functions import activate

_BEYOND = 1 << 40


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
    row_hop: int,
    column_hop: int,
    top: int,
    left: int,
    activation: int,
    alpha: float,
    beta: float,
) -> None:
    """Sum the products `[image, row, column, window row, window column, channel]` that fall on each output.

    A pixel has `pixel_bytes` of them, a place in the window `tap_bytes`. With `weights`, FP32 rows of `weight_bytes`
    for each place, what is given are the factors: each is multiplied when it is added. They are added in the order of
    the window, whoever computes them. Of the places in a window only every `hop`-th one falls on the same output.
    """
    rows_back, columns_back = row_dilation * row_hop // row_step, column_dilation * column_hop // column_step
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
        first_y = _first_place(row + top, row_step, row_dilation, row_hop)
        first_row = (row + top - first_y * row_dilation) // row_step
        # Outputs a step apart read the same places of the window, of neighbouring pixels.
        for phase in range(min(column_step, columns)):
            first_x = _first_place(phase + left, column_step, column_dilation, column_hop)
            first_column = (phase + left - first_x * column_dilation) // column_step
            column = phase
            while column < columns:
                value = load(bias + channel * 4)
                source_row, y = first_row, first_y
                while y < window_rows:
                    if 0 <= source_row < source_rows:
                        source_column, x = first_column, first_x
                        at = first + (source_row * source_columns + source_column) * pixel_bytes
                        tap = y * window_columns + x
                        while x < window_columns:
                            if 0 <= source_column < source_columns:
                                place = at + tap * tap_bytes
                                product = load(place) if count >= LANES else read(place, 4, FP32, count)
                                if weights != 0:
                                    product = product * load(weights + tap * weight_bytes + channel * 4)
                                value = value + product
                            x, tap = x + column_hop, tap + column_hop
                            source_column, at = source_column - columns_back, at - columns_back * pixel_bytes
                    y += row_hop
                    source_row -= rows_back
                value = activate(activation, value, alpha, beta)
                write(to + column * output_pixel_stride, output_channel_stride, output_kind, value, count)
                column, first_column = column + column_step, first_column + 1


@inlined
def _first_place(at: int, step: int, dilation: int, hop: int) -> int:
    """The first place of a window that falls on an output, of which every `hop`-th may; beyond any where none does.

    A place falls on it where `at - place * dilation` is a multiple of the step.
    """
    place = 0
    while place < hop and (at - place * dilation) % step != 0:
        place += 1
    return place if place < hop else _BEYOND
