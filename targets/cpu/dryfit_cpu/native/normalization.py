"""Normalization to mean 0 and variance 1 over any axes, and local response normalization across channels."""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu.codes import FP32
from dryfit_cpu.compiler.compilation import inlined, native, outlined
from dryfit_cpu.compiler.memory import VECTOR_BYTES, load, load_float, load_int, read, store, write
from dryfit_cpu.compiler.vectors import LANES, first_lanes, multiply_add, splat, square_root, sum_of
from dryfit_cpu.compiler.wide_numbers import power
from dryfit_cpu.descriptors import Chunk, Elements, Extents, Function, Image, WordTable
from dryfit_cpu.native.functions import apply_function, apply_to_run
from dryfit_cpu.native.indices import element, pixel, share

PLACE_BYTES = 32
"""A row of the place table: byte offsets in source, output, scale and bias."""


@native
def normalize(
    chunk: Chunk,
    source: Elements,
    output: Elements,
    scale: Elements,
    bias: Elements,
    extents: Extents,
    places: WordTable,
    is_across: int,
    epsilon: float,
    function: Function,
) -> None:
    """`output = function((x - mean) / sqrt(variance + epsilon) * scale + bias)` for each index of three axes.

    Scale and bias are FP32. What is averaged over lies in runs along the last axis, which begin at the places. A vector
    lies along the run, or with `is_across` along the last of the three axes. The order depends on shapes and layouts
    alone.
    """
    run, zero = extents.axis3, splat(float32(0.0))
    step = 1 if is_across else LANES
    blocks = (extents.axis2 + LANES - 1) // LANES if is_across else extents.axis2
    lane_stride = source.stride2 if is_across else source.stride3
    output_lane_stride = output.stride2 if is_across else output.stride3
    scale_lane_stride = scale.stride2 if is_across else scale.stride3
    bias_lane_stride = bias.stride2 if is_across else bias.stride3
    is_dense = source.kind == FP32 and source.stride3 == 4 and output.kind == FP32 and output.stride3 == 4
    is_dense = is_dense and not is_across
    divisor = splat(float32(run * places.rows))
    for index in range(*share(chunk, extents.axis0 * extents.axis1 * blocks)):
        i01 = index // blocks
        i2 = (index - i01 * blocks) * (LANES if is_across else 1)
        i0 = i01 // extents.axis1
        i1 = i01 - i0 * extents.axis1
        start = element(source, i0, i1, i2, 0)
        lanes = extents.axis2 - i2 if is_across else 0

        # Three passes over what one result normalizes. The variance in one pass with the mean, by sums of squares,
        # loses all digits where the mean is large; and what is read again is in the cache.
        runs = (start, places.address, places.rows, run, source.stride3)
        mean = _total(*runs, is_across, lane_stride, source.kind, lanes, zero, 0) / divisor
        variance = _total(*runs, is_across, lane_stride, source.kind, lanes, mean, 1) / divisor
        factor = splat(float32(1.0)) / square_root(variance + splat(epsilon))

        to = element(output, i0, i1, i2, 0)
        scale_start, bias_start = element(scale, i0, i1, i2, 0), element(bias, i0, i1, i2, 0)
        for place in range(places.rows):
            row = places.address + place * PLACE_BYTES
            at, to_run = start + load_int(row), to + load_int(row + 8)
            scale_run, bias_run = scale_start + load_int(row + 16), bias_start + load_int(row + 24)
            done = 0
            if is_dense:
                done = _write_dense(
                    at, to_run, run, (mean, factor), (scale_run, scale.stride3), (bias_run, bias.stride3)
                )
                apply_to_run(function, to_run, to_run, done)
            for i in range(done, run, step):
                count = lanes if is_across else run - i
                x = (read(at + i * source.stride3, lane_stride, source.kind, count) - mean) * factor
                x = x * _factor(scale_run + i * scale.stride3, scale_lane_stride, count)
                x = x + _factor(bias_run + i * bias.stride3, bias_lane_stride, count)
                write(to_run + i * output.stride3, output_lane_stride, output.kind, apply_function(function, x), count)


@outlined
def _total(
    start: int,
    places: int,
    place_count: int,
    run: int,
    run_stride: int,
    is_across: int,
    lane_stride: int,
    kind: int,
    lanes: int,
    centre: Any,
    is_squared: int,
) -> Any:
    """The sum of `x - centre`, or of its square: of each lane, or along a run of all lanes in each."""
    zero = splat(float32(0.0))
    step = 1 if is_across else LANES
    total = zero
    for place in range(place_count):
        at = start + load_int(places + place * PLACE_BYTES)
        even, odd, done = zero, zero, 0
        if kind == FP32 and run_stride == 4 and not is_across:
            done = run // (4 * LANES) * (4 * LANES)
            even, odd = _dense_total(at, done, centre, is_squared)
        for i in range(done, run, 2 * step):
            count = lanes if is_across else run - i
            x = first_lanes(count, read(at + i * run_stride, lane_stride, kind, count) - centre, zero)
            even = even + (x * x if is_squared else x)
            if i + step < run:
                count = lanes if is_across else run - i - step
                x = read(at + (i + step) * run_stride, lane_stride, kind, count) - centre
                x = first_lanes(count, x, zero)
                odd = odd + (x * x if is_squared else x)
        total = total + (even + odd)
    return total if is_across else splat(sum_of(total))


@inlined
def _dense_total(at: int, count: int, centre: Any, is_squared: int) -> Any:
    """The same of values that lie together, as two sums; their number is a multiple of four vectors."""
    zero = splat(float32(0.0))
    a, b, c, d = zero, zero, zero, zero
    if is_squared:
        for i in range(at, at + 4 * count, 4 * VECTOR_BYTES):
            v, w = load(i) - centre, load(i + VECTOR_BYTES) - centre
            x, y = load(i + 2 * VECTOR_BYTES) - centre, load(i + 3 * VECTOR_BYTES) - centre
            a, b, c, d = multiply_add(v, v, a), multiply_add(w, w, b), multiply_add(x, x, c), multiply_add(y, y, d)
    else:
        for i in range(at, at + 4 * count, 4 * VECTOR_BYTES):
            a, b = a + (load(i) - centre), b + (load(i + VECTOR_BYTES) - centre)
            c, d = c + (load(i + 2 * VECTOR_BYTES) - centre), d + (load(i + 3 * VECTOR_BYTES) - centre)
    return a + c, b + d


@inlined
def _write_dense(at: int, to: int, run: int, moments: Any, scale: tuple[int, int], bias: tuple[int, int]) -> int:
    """Write whole vectors of a run that lies together, before the function; returns how many elements they have."""
    mean, factor = moments
    whole = run // LANES * LANES
    if scale[1] == 0 and bias[1] == 0:
        factor, added = factor * splat(load_float(scale[0])), splat(load_float(bias[0]))
        for i in range(0, 4 * whole, VECTOR_BYTES):
            store(to + i, multiply_add(load(at + i) - mean, factor, added))
        return whole
    if scale[1] == 4 and bias[1] == 4:
        for i in range(0, 4 * whole, VECTOR_BYTES):
            store(to + i, multiply_add((load(at + i) - mean) * factor, load(scale[0] + i), load(bias[0] + i)))
        return whole
    return 0


@inlined
def _factor(address: int, stride: int, count: int) -> Any:
    """FP32 values, or one in all lanes."""
    if stride == 0:
        return splat(load_float(address))
    return read(address, stride, FP32, count)


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
