"""Local response normalization across channels."""

from __future__ import annotations

from numba import float32

from dryfit_cpu.compiler.compilation import native
from dryfit_cpu.compiler.memory import load, read, write
from dryfit_cpu.compiler.power import power
from dryfit_cpu.compiler.vector_functions import square_root
from dryfit_cpu.compiler.vectors import LANES, splat


@native
def normalize_locally(
    chunk: int,
    chunks: int,
    squares: int,
    square_pitch: int,
    source: int,
    image_stride: int,
    row_stride: int,
    pixel_stride: int,
    channel_stride: int,
    kind: int,
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
    window: int,
    factor: float,
    offset: float,
    exponent: float,
) -> None:
    """`x / (offset + factor * sum) ** exponent`, the sum over the `window` squares that begin at the channel's.

    Squares are FP32 `[images, rows, columns, square_pitch]`, the pitch in bytes, with zeros around the channels. An
    exponent of 3/4, which nearly all networks have, is two square roots: within 3 units in the last place of the sum's
    power; others are within one.
    """
    total = images * rows * columns
    for index in range(total * chunk // chunks, total * (chunk + 1) // chunks):
        line = index // columns
        column = index - line * columns
        image = line // rows
        row = line - image * rows
        at = source + image * image_stride + row * row_stride + column * pixel_stride
        to = output + image * output_image_stride + row * output_row_stride + column * output_pixel_stride
        for channel in range(0, channels, LANES):
            count = channels - channel
            first = squares + index * square_pitch + channel * 4
            sums = load(first)
            for place in range(1, window):
                sums = sums + load(first + place * 4)
            base = splat(offset) + splat(factor) * sums
            if exponent == float32(0.75):
                root = square_root(base)
                divisor = root * square_root(root)
            else:
                divisor = power(base, splat(exponent))
            x = read(at + channel * channel_stride, channel_stride, kind, count)
            write(to + channel * output_channel_stride, output_channel_stride, output_kind, x / divisor, count)
