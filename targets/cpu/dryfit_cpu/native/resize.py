"""Resizing images: each output from two rows and two columns of the input, a vector of channels at a time."""

from __future__ import annotations

from numba import float32

from dryfit_cpu.codes import INT8
from dryfit_cpu.compiler.compilation import native
from dryfit_cpu.compiler.memory import load_float, load_int, read, write
from dryfit_cpu.compiler.vectors import LANES, splat
from dryfit_cpu.native.requantization import limited, rounded


@native
def resize(
    chunk: int,
    chunks: int,
    source: int,
    image_stride: int,
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
    row_offsets: int,
    row_weights: int,
    column_offsets: int,
    column_weights: int,
    is_nearest: int,
    source_zero: float,
    multiplier: float,
    low: float,
    high: float,
    zero_point: float,
    rounding: int,
) -> None:
    """The weighted sum of four pixels, rows first, or the first of them.

    Then its distance from a zero point, times a multiplier, is limited, and where it is INT8 rounded; of real numbers
    the zero points are 0 and the multiplier is 1.

    The offset tables hold two byte offsets for each output row and column, the weight tables two FP32 weights.
    """
    total = images * rows
    for index in range(total * chunk // chunks, total * (chunk + 1) // chunks):
        image = index // rows
        row = index - image * rows
        start = source + image * image_stride
        upper, lower = start + load_int(row_offsets + row * 16), start + load_int(row_offsets + row * 16 + 8)
        upper_weight, lower_weight = splat(float32(0.0)), splat(float32(0.0))
        if not is_nearest:
            upper_weight = splat(load_float(row_weights + row * 8))
            lower_weight = splat(load_float(row_weights + row * 8 + 4))
        to = output + image * output_image_stride + row * output_row_stride
        for column in range(columns):
            left, right = load_int(column_offsets + column * 16), load_int(column_offsets + column * 16 + 8)
            for channel in range(0, channels, LANES):
                count = channels - channel
                at = channel * channel_stride
                value = read(upper + left + at, channel_stride, kind, count)
                if not is_nearest:
                    left_weight = splat(load_float(column_weights + column * 8))
                    right_weight = splat(load_float(column_weights + column * 8 + 4))
                    on_left = value * upper_weight + read(lower + left + at, channel_stride, kind, count) * lower_weight
                    on_right = read(upper + right + at, channel_stride, kind, count) * upper_weight
                    on_right = on_right + read(lower + right + at, channel_stride, kind, count) * lower_weight
                    value = on_left * left_weight + on_right * right_weight
                value = limited((value - splat(source_zero)) * splat(multiplier), low, high)
                if output_kind == INT8:
                    value = rounded(value, rounding) + splat(zero_point)
                at_output = to + column * output_pixel_stride + channel * output_channel_stride
                write(at_output, output_channel_stride, output_kind, value, count)
