"""Deconvolution's second half: each output collects what the inputs' windows lay on it."""

from __future__ import annotations

from dryfit_cpu.codes import FP32
from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.memory import load, read, write
from dryfit_cpu.compiler.vectors import LANES
from dryfit_cpu.descriptors import Chunk, Function, Image, WindowAxis
from dryfit_cpu.native.activations import activate
from dryfit_cpu.native.indices import pixel, share

_BEYOND = 1 << 40


@native
def collect(
    chunk: Chunk,
    products: int,
    pixel_bytes: int,
    tap_bytes: int,
    weights: int,
    weight_bytes: int,
    source_rows: int,
    source_columns: int,
    bias: int,
    output: Image,
    window_rows: WindowAxis,
    window_columns: WindowAxis,
    row_hop: int,
    column_hop: int,
    function: Function,
) -> None:
    """Sum the products `[image, row, column, window row, window column, channel]` that fall on each output.

    A pixel has `pixel_bytes` of them, a place in the window `tap_bytes`. With `weights`, FP32 rows of `weight_bytes`
    for each place, what is given are the factors: each is multiplied when it is added. They are added in the order of
    the window, whoever computes them. Of the places in a window only every `hop`-th one falls on the same output.
    """
    # Each output collects, instead of each input adding to what it falls on: no two threads then write the same output,
    # none is read back, and the order of the sum is that of the window.
    rows_back = window_rows.dilation * row_hop // window_rows.step
    columns_back = window_columns.dilation * column_hop // window_columns.step
    column_step = window_columns.step
    blocks = (output.channels + LANES - 1) // LANES
    for index in range(*share(chunk, output.images * output.rows * blocks)):
        line = index // blocks
        channel = (index - line * blocks) * LANES
        image = line // output.rows
        row = line - image * output.rows
        count = output.channels - channel
        first = products + image * source_rows * source_columns * pixel_bytes + channel * 4
        to = pixel(output, image, row, 0) + channel * output.channel_stride
        first_y, first_row = _first_place(row, window_rows, row_hop)
        # Outputs a step apart read the same places of the window, of neighbouring pixels.
        for phase in range(min(column_step, output.columns)):
            first_x, first_column = _first_place(phase, window_columns, column_hop)
            column = phase
            while column < output.columns:
                value = load(bias + channel * 4)
                source_row, y = first_row, first_y
                while y < window_rows.extent:
                    if 0 <= source_row < source_rows:
                        source_column, x = first_column, first_x
                        at = first + (source_row * source_columns + source_column) * pixel_bytes
                        tap = y * window_columns.extent + x
                        while x < window_columns.extent:
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
                value = activate(function, value)
                write(to + column * output.pixel_stride, output.channel_stride, output.kind, value, count)
                column, first_column = column + column_step, first_column + 1


@inlined
def _first_place(index: int, window: WindowAxis, hop: int) -> tuple[int, int]:
    """The first place of a window that falls on an output, of which every `hop`-th may, and the input that it is of.

    A place falls on it where `at - place * dilation` is a multiple of the step; it is beyond any where none does.
    """
    at, place = index + window.before, 0
    while place < hop and (at - place * window.dilation) % window.step != 0:
        place += 1
    place = place if place < hop else _BEYOND
    return place, (at - place * window.dilation) // window.step
