"""Local response normalization across channels."""

from __future__ import annotations

from numba import float32

from dryfit_cpu.compiler.compilation import native
from dryfit_cpu.compiler.memory import load, read, write
from dryfit_cpu.compiler.power import power
from dryfit_cpu.compiler.vector_functions import square_root
from dryfit_cpu.compiler.vectors import LANES, splat
from dryfit_cpu.descriptors import Chunk, Image
from dryfit_cpu.native.indices import pixel, share


@native
def normalize_locally(
    chunk: Chunk,
    squares: int,
    square_pitch: int,
    source: Image,
    output: Image,
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
    # Squares are made before, with zeros around them, and each sum adds its window anew: sliding, adding one square and
    # taking one off, would carry the rounding errors of a pixel's first channels to its last.
    for index in range(*share(chunk, output.images * output.rows * output.columns)):
        line = index // output.columns
        column = index - line * output.columns
        image = line // output.rows
        row = line - image * output.rows
        at, to = pixel(source, image, row, column), pixel(output, image, row, column)
        for channel in range(0, output.channels, LANES):
            count = output.channels - channel
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
            x = read(at + channel * source.channel_stride, source.channel_stride, source.kind, count)
            write(to + channel * output.channel_stride, output.channel_stride, output.kind, x / divisor, count)
