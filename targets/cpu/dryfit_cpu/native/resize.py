"""Resizing images: each output from two rows and two columns of the input, a vector of channels at a time."""

from __future__ import annotations

from numba import float32

from dryfit_cpu.codes import INT8
from dryfit_cpu.compiler.compilation import native
from dryfit_cpu.compiler.memory import load_float, load_int, read, write
from dryfit_cpu.compiler.vectors import LANES, splat
from dryfit_cpu.descriptors import Chunk, Image, SampleSteps
from dryfit_cpu.native.indices import pixel, share
from dryfit_cpu.native.requantization import limited, rounded


@native
def resize(
    chunk: Chunk,
    source: Image,
    output: Image,
    row_offsets: int,
    row_weights: int,
    column_offsets: int,
    column_weights: int,
    is_nearest: int,
    steps: SampleSteps,
) -> None:
    """The weighted sum of four pixels, rows first, or the first of them.

    Then its distance from a zero point, times a multiplier, is limited, and where it is INT8 rounded; of real numbers
    the zero points are 0 and the multiplier is 1.

    The offset tables hold two byte offsets for each output row and column, the weight tables two FP32 weights.
    """
    # Where an output lies between pixels is in tables that the reference makes: so all its modes of coordinates are one
    # loop here, and its rounding of coordinates is that of the oracle.
    for index in range(*share(chunk, output.images * output.rows)):
        image = index // output.rows
        row = index - image * output.rows
        start = source.address + image * source.image_stride
        upper, lower = start + load_int(row_offsets + row * 16), start + load_int(row_offsets + row * 16 + 8)
        upper_weight, lower_weight = splat(float32(0.0)), splat(float32(0.0))
        if not is_nearest:
            upper_weight = splat(load_float(row_weights + row * 8))
            lower_weight = splat(load_float(row_weights + row * 8 + 4))
        for column in range(output.columns):
            left, right = load_int(column_offsets + column * 16), load_int(column_offsets + column * 16 + 8)
            to = pixel(output, image, row, column)
            for channel in range(0, output.channels, LANES):
                count = output.channels - channel
                at, step, kind = channel * source.channel_stride, source.channel_stride, source.kind
                value = read(upper + left + at, step, kind, count)
                if not is_nearest:
                    left_weight = splat(load_float(column_weights + column * 8))
                    right_weight = splat(load_float(column_weights + column * 8 + 4))
                    on_left = value * upper_weight + read(lower + left + at, step, kind, count) * lower_weight
                    on_right = read(upper + right + at, step, kind, count) * upper_weight
                    on_right = on_right + read(lower + right + at, step, kind, count) * lower_weight
                    value = on_left * left_weight + on_right * right_weight
                distance = (value - splat(steps.source_zero)) * splat(steps.multiplier)
                value = limited(distance, steps.low, steps.high)
                if output.kind == INT8:
                    value = rounded(value, steps.rounding) + splat(steps.zero_point)
                write(to + channel * output.channel_stride, output.channel_stride, output.kind, value, count)
