"""Depthwise convolution of INT8 values: each channel by its own window, a vector of channels at a time.

Products of bytes and their sums are small enough for FP32 to hold them exactly, and FP32 lanes multiply and add in one
instruction on almost every machine.
"""

from __future__ import annotations

from typing import Any

from dryfit_cpu.codes import HALF_TO_EVEN, INT8
from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.integer_memory import STAGED_BYTES, load_staged
from dryfit_cpu.compiler.memory import VECTOR_BYTES, load, stack_memory, store
from dryfit_cpu.compiler.vectors import LANES, multiply_add
from dryfit_cpu.native.requantization import requantized, write_limited

_PIXELS = 8
"""Neighbouring outputs that are summed at once."""


@native
def depthwise(
    chunk: int,
    chunks: int,
    source: int,
    image_stride: int,
    row_stride: int,
    pixel_stride: int,
    weights: int,
    starts: int,
    multipliers: int,
    padded_channels: int,
    output: int,
    output_image_stride: int,
    output_row_stride: int,
    output_pixel_stride: int,
    output_channel_stride: int,
    output_kind: int,
    residual: int,
    residual_image_stride: int,
    residual_row_stride: int,
    residual_pixel_stride: int,
    residual_channel_stride: int,
    residual_kind: int,
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
    rounding: int,
    rounds_sum: int,
    sum_low: float,
    sum_high: float,
    sum_multiplier: float,
    residual_multiplier: float,
    low: float,
    high: float,
    rounds_last: int,
    last_multiplier: float,
    last_low: float,
    last_high: float,
) -> None:
    """Exact sums over the window of a staged input, requantized.

    Weights are FP32 `[window rows, window columns, padded channels]`; starts, which the sums begin at, and multipliers
    are FP32 a channel.
    """
    scratch = stack_memory()
    modes = (rounding, residual != 0, rounds_sum != 0, rounds_last != 0)
    steps = (
        sum_low, sum_high, sum_multiplier, residual_multiplier, low, high, last_multiplier, last_low, last_high,
    )  # fmt: skip
    is_common = rounding == HALF_TO_EVEN and output_kind == INT8 and output_channel_stride == 1 and residual == 0
    is_common = is_common and rounds_sum == 0
    tap_bytes = padded_channels * 4
    blocks = (channels + LANES - 1) // LANES
    total = images * rows * blocks
    for index in range(total * chunk // chunks, total * (chunk + 1) // chunks):
        line = index // blocks
        channel = (index - line * blocks) * LANES
        image = line // rows
        row = line - image * rows
        count = channels - channel
        start = source + image * image_stride + row * row_step * row_stride + channel * STAGED_BYTES
        to = output + image * output_image_stride + row * output_row_stride + channel * output_channel_stride
        add = residual + image * residual_image_stride + row * residual_row_stride + channel * residual_channel_stride
        taps, multiplier, first = weights + channel * 4, load(multipliers + channel * 4), load(starts + channel * 4)
        column = 0
        while column < columns:
            pixels = 1
            at = start + column * column_step * pixel_stride
            if columns >= _PIXELS:
                # The last group overlaps the one before: it computes the same values again.
                column = min(column, columns - _PIXELS)
                pixels = _PIXELS
                at = start + column * column_step * pixel_stride
                if window_columns == 3 and column_dilation == 1 and column_step == 1:
                    _sum_neighbours_by_3(
                        scratch, at, pixel_stride, row_dilation * row_stride, taps, tap_bytes, window_rows, first
                    )
                elif window_columns == 3 and column_dilation == 1 and column_step == 2:
                    _sum_every_other_by_3(
                        scratch, at, pixel_stride, row_dilation * row_stride, taps, tap_bytes, window_rows, first
                    )
                else:
                    _sum_neighbours(
                        scratch, at, column_step * pixel_stride, row_dilation * row_stride,
                        column_dilation * pixel_stride, taps, tap_bytes, window_rows, window_columns, first,
                    )  # fmt: skip
            else:
                value = first
                for y in range(window_rows):
                    for x in range(window_columns):
                        place = at + y * row_dilation * row_stride + x * column_dilation * pixel_stride
                        w = load(taps + (y * window_columns + x) * tap_bytes)
                        value = multiply_add(load_staged(place), w, value)
                store(scratch, value)
            pixel_to, pixel_add = to + column * output_pixel_stride, add + column * residual_pixel_stride
            for pixel in range(pixels):
                x = load(scratch + pixel * VECTOR_BYTES) * multiplier
                if is_common and count >= LANES and rounds_last != 0:
                    _finish(x, 0, 1, INT8, pixel_to, 1, INT8, LANES, (HALF_TO_EVEN, False, False, True), steps)
                elif is_common and count >= LANES:
                    _finish(x, 0, 1, INT8, pixel_to, 1, INT8, LANES, (HALF_TO_EVEN, False, False, False), steps)
                else:
                    _finish(
                        x, pixel_add, residual_channel_stride, residual_kind, pixel_to, output_channel_stride,
                        output_kind, count, modes, steps,
                    )  # fmt: skip
                pixel_to, pixel_add = pixel_to + output_pixel_stride, pixel_add + residual_pixel_stride
            column += pixels


@inlined
def _finish(
    x: Any,
    residual: int,
    residual_stride: int,
    residual_kind: int,
    output: int,
    output_stride: int,
    output_kind: int,
    count: int,
    modes: Any,
    steps: Any,
) -> None:
    """A vector of results from its scaled sums."""
    x = requantized(x, residual, residual_stride, residual_kind, count, modes, steps)
    write_limited(output, output_stride, output_kind, x, count, modes, steps)


@inlined
def _sum_neighbours_by_3(
    sums: int, source: int, step: int, row_bytes: int, weights: int, tap_bytes: int, window_rows: int, first: Any
) -> None:
    """The sums of `_PIXELS` outputs under windows of three columns, each input read once a row."""
    s0, s1, s2, s3, s4, s5, s6, s7 = first, first, first, first, first, first, first, first
    for y in range(window_rows):
        at, tap = source + y * row_bytes, weights + 3 * y * tap_bytes
        w0, w1, w2 = load(tap), load(tap + tap_bytes), load(tap + 2 * tap_bytes)
        a, b = load_staged(at), load_staged(at + step)
        c = load_staged(at + 2 * step)
        s0 = multiply_add(c, w2, multiply_add(b, w1, multiply_add(a, w0, s0)))
        a = load_staged(at + 3 * step)
        s1 = multiply_add(a, w2, multiply_add(c, w1, multiply_add(b, w0, s1)))
        b = load_staged(at + 4 * step)
        s2 = multiply_add(b, w2, multiply_add(a, w1, multiply_add(c, w0, s2)))
        c = load_staged(at + 5 * step)
        s3 = multiply_add(c, w2, multiply_add(b, w1, multiply_add(a, w0, s3)))
        a = load_staged(at + 6 * step)
        s4 = multiply_add(a, w2, multiply_add(c, w1, multiply_add(b, w0, s4)))
        b = load_staged(at + 7 * step)
        s5 = multiply_add(b, w2, multiply_add(a, w1, multiply_add(c, w0, s5)))
        c = load_staged(at + 8 * step)
        s6 = multiply_add(c, w2, multiply_add(b, w1, multiply_add(a, w0, s6)))
        a = load_staged(at + 9 * step)
        s7 = multiply_add(a, w2, multiply_add(c, w1, multiply_add(b, w0, s7)))
    _store_sums(sums, (s0, s1, s2, s3, s4, s5, s6, s7))


@inlined
def _sum_every_other_by_3(
    sums: int, source: int, step: int, row_bytes: int, weights: int, tap_bytes: int, window_rows: int, first: Any
) -> None:
    """The same for outputs two columns apart."""
    s0, s1, s2, s3, s4, s5, s6, s7 = first, first, first, first, first, first, first, first
    for y in range(window_rows):
        at, tap = source + y * row_bytes, weights + 3 * y * tap_bytes
        w0, w1, w2 = load(tap), load(tap + tap_bytes), load(tap + 2 * tap_bytes)
        a, b = load_staged(at), load_staged(at + 2 * step)
        s0 = multiply_add(b, w2, multiply_add(load_staged(at + step), w1, multiply_add(a, w0, s0)))
        a = load_staged(at + 4 * step)
        s1 = multiply_add(a, w2, multiply_add(load_staged(at + 3 * step), w1, multiply_add(b, w0, s1)))
        b = load_staged(at + 6 * step)
        s2 = multiply_add(b, w2, multiply_add(load_staged(at + 5 * step), w1, multiply_add(a, w0, s2)))
        a = load_staged(at + 8 * step)
        s3 = multiply_add(a, w2, multiply_add(load_staged(at + 7 * step), w1, multiply_add(b, w0, s3)))
        b = load_staged(at + 10 * step)
        s4 = multiply_add(b, w2, multiply_add(load_staged(at + 9 * step), w1, multiply_add(a, w0, s4)))
        a = load_staged(at + 12 * step)
        s5 = multiply_add(a, w2, multiply_add(load_staged(at + 11 * step), w1, multiply_add(b, w0, s5)))
        b = load_staged(at + 14 * step)
        s6 = multiply_add(b, w2, multiply_add(load_staged(at + 13 * step), w1, multiply_add(a, w0, s6)))
        a = load_staged(at + 16 * step)
        s7 = multiply_add(a, w2, multiply_add(load_staged(at + 15 * step), w1, multiply_add(b, w0, s7)))
    _store_sums(sums, (s0, s1, s2, s3, s4, s5, s6, s7))


@inlined
def _sum_neighbours(
    sums: int,
    source: int,
    step: int,
    row_bytes: int,
    column_bytes: int,
    weights: int,
    tap_bytes: int,
    window_rows: int,
    window_columns: int,
    first: Any,
) -> None:
    """The sums of `_PIXELS` outputs, `step` bytes apart in the source."""
    s0, s1, s2, s3, s4, s5, s6, s7 = first, first, first, first, first, first, first, first
    for y in range(window_rows):
        at, tap = source + y * row_bytes, weights + y * window_columns * tap_bytes
        for _ in range(window_columns):
            w = load(tap)
            s0 = multiply_add(load_staged(at), w, s0)
            s1 = multiply_add(load_staged(at + step), w, s1)
            s2 = multiply_add(load_staged(at + 2 * step), w, s2)
            s3 = multiply_add(load_staged(at + 3 * step), w, s3)
            s4 = multiply_add(load_staged(at + 4 * step), w, s4)
            s5 = multiply_add(load_staged(at + 5 * step), w, s5)
            s6 = multiply_add(load_staged(at + 6 * step), w, s6)
            s7 = multiply_add(load_staged(at + 7 * step), w, s7)
            at, tap = at + column_bytes, tap + tap_bytes
    _store_sums(sums, (s0, s1, s2, s3, s4, s5, s6, s7))


@inlined
def _store_sums(sums: int, values: Any) -> None:
    s0, s1, s2, s3, s4, s5, s6, s7 = values
    store(sums, s0)
    store(sums + VECTOR_BYTES, s1)
    store(sums + 2 * VECTOR_BYTES, s2)
    store(sums + 3 * VECTOR_BYTES, s3)
    store(sums + 4 * VECTOR_BYTES, s4)
    store(sums + 5 * VECTOR_BYTES, s5)
    store(sums + 6 * VECTOR_BYTES, s6)
    store(sums + 7 * VECTOR_BYTES, s7)
