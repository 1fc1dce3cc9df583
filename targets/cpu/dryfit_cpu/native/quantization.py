"""Real numbers become quantized ones, and the other way round.

INT8 has functions of its own: for what lies together, and for pictures, of which three planes become pixels of three
bytes. All other element types, and any granularity of scales, have one pair of functions for all.
"""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu.codes import FP32, INT8
from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.integer_memory import PACKED_VALUES, store_packed, store_pixels
from dryfit_cpu.compiler.memory import load, read, write
from dryfit_cpu.compiler.narrow_numbers import (
    in_all_lanes,
    largest_or_nan,
    quotient_or_zero,
    read_narrow,
    read_scale,
    write_narrow,
)
from dryfit_cpu.compiler.vectors import (
    HAS_FUSED_PRODUCTS,
    LANES,
    magnitude,
    maximum,
    maximum_or_nan,
    minimum,
    multiply_add,
    nearest_whole,
    splat,
)
from dryfit_cpu.descriptors import Chunk, Image, Scales
from dryfit_cpu.native.indices import pixel, share

_LOWEST: Any = float32(-128.0)
_HIGHEST: Any = float32(127.0)


@native
def quantize(
    chunk: Chunk,
    source: int,
    output: int,
    count: int,
    scale: float,
    reciprocal: float,
    zero_point: float,
    is_ordinary: int,
) -> None:
    """`saturate(round(x / scale) + zero_point)` of FP32 that lies together, ties to even; NaN becomes the lowest.

    The reciprocal is that of the scale, rounded to nearest. `is_ordinary` says that it and 1000 scales are neither
    near the largest nor near the smallest FP32 numbers.
    """
    blocks = (count + PACKED_VALUES - 1) // PACKED_VALUES
    first, end = share(chunk, blocks)
    start, stop = first * PACKED_VALUES, min(count, end * PACKED_VALUES)
    done = start
    if is_ordinary:
        done = start + (stop - start) // PACKED_VALUES * PACKED_VALUES
        # A division takes as long as a dozen products, and memory would bring values faster. So the quotient comes from
        # the reciprocal and one correction; it is the correctly rounded one, whatever the value. Values are first
        # brought within 400 scales: what is beyond saturates anyway, and the correction needs a finite product.
        low, high = splat(_LOWEST), splat(_HIGHEST)
        factors = (splat(scale), splat(reciprocal), splat(float32(-400.0) * scale), splat(float32(400.0) * scale))
        for i in range(start, done, PACKED_VALUES):
            a, b = _quotient(source + i * 4, factors), _quotient(source + (i + LANES) * 4, factors)
            c = _quotient(source + (i + 2 * LANES) * 4, factors)
            d = _quotient(source + (i + 3 * LANES) * 4, factors)
            if zero_point != 0.0:
                a, b = _shifted(a, zero_point), _shifted(b, zero_point)
                c, d = _shifted(c, zero_point), _shifted(d, zero_point)
            store_packed(output + i, a, b, c, d, low, high)
    for i in range(done, stop, LANES):
        x = read(source + i * 4, 4, FP32, stop - i) / splat(scale)
        write(output + i, 1, INT8, _shifted(x, zero_point), stop - i)


@inlined
def _shifted(x: Any, zero_point: float) -> Any:
    """The nearest whole numbers, with the zero point added to them."""
    return nearest_whole(x) + splat(zero_point)


@inlined
def _quotient(address: int, factors: Any) -> Any:
    """FP32 values, first brought between limits, divided by the scale, correctly rounded.

    Source: P. Markstein, Computation of elementary functions on the IBM RISC System/6000 processor, 1990, theorem 8.1:
    with the rounded reciprocal and the exact remainder of a product with it, one fused multiply-add gives the quotient.
    """
    scale, reciprocal, low, high = factors
    x = minimum(maximum(load(address), low), high)
    if not HAS_FUSED_PRODUCTS:
        return x / scale
    near = x * reciprocal
    return multiply_add(multiply_add(splat(float32(-1.0)) * near, scale, x), reciprocal, near)


@native
def quantize_planes(
    chunk: Chunk,
    source: Image,
    output: Image,
    scale: float,
    zero_point: float,
) -> None:
    """`saturate(round(x / scale) + zero_point)` of FP32 `[images, 3, rows, columns]`, ties to even.

    Rows have at least one vector.
    """
    # Planes are what cameras and numpy give, pixels what the first convolution reads: one pass quantizes and turns
    # them. As plain loops over values this took twenty times as long.
    divisor = splat(scale)
    for index in range(*share(chunk, output.images * output.rows)):
        image = index // output.rows
        row = index - image * output.rows
        start, to = pixel(source, image, row, 0), pixel(output, image, row, 0)
        for place in range(0, output.columns, LANES):
            # The last vector overlaps the one before.
            column = min(place, output.columns - LANES)
            at = start + column * 4
            red = _shifted(load(at) / divisor, zero_point)
            green = _shifted(load(at + source.channel_stride) / divisor, zero_point)
            blue = _shifted(load(at + 2 * source.channel_stride) / divisor, zero_point)
            store_pixels(to + column * 3, red, green, blue)


@inlined
def _scales_of(index: int, rows: int, scales: Scales) -> int:
    """The address of the scales of a row, of which there are so many in each outer part."""
    one = index // rows
    return scales.address + one * scales.outer_stride + (index - one * rows) // scales.block * scales.row_stride


def _converter(convert: Any) -> Any:
    """The native function that converts numbers by their scales; `convert` does a vector, at an index, of so many."""

    def convert_numbers(
        chunk: Chunk,
        source: int,
        source_kind: int,
        scales: Scales,
        output: int,
        output_kind: int,
        count: int,
        outer: int,
        rows: int,
        inner: int,
    ) -> None:
        """Convert `[outer, rows, inner]`, together in memory, of which the first `count` are there.

        A scale serves a block of rows, and all of a row or, where its stride is not 0, one column.
        """
        # Whatever the granularity, per tensor, per axis or per block, it is this one geometry with other strides.
        for index in range(*share(chunk, outer * rows)):
            start, factors = index * inner, _scales_of(index, rows, scales)
            stop = min(start + inner, count)
            for i in range(start, stop, LANES):
                factor = read_scale(factors + (i - start) * scales.stride, scales.stride, scales.kind, stop - i)
                convert(source, source_kind, factor, output, output_kind, i, stop - i)

    return native(convert_numbers)


@inlined
def _dequantize(source: int, source_kind: int, factor: Any, output: int, kind: int, index: int, count: int) -> None:
    """`x * scale` in FP32, rounded once."""
    size = 4 >> (kind & 3)
    write(output + index * size, size, kind, read_narrow(source + index, source_kind, count) * factor, count)


@inlined
def _quantize(source: int, source_kind: int, factor: Any, output: int, kind: int, index: int, count: int) -> None:
    """`saturate(round(x / scale))`, a division in FP32, ties to even."""
    # Divided, and not multiplied by a reciprocal: that is rounded itself, and would give another neighbour at ties.
    write_narrow(output + index, kind, _number(source, source_kind, index, count) / factor, count)


@native
def quantize_blocks(
    chunk: Chunk,
    source: int,
    source_kind: int,
    scales: int,
    scale_kind: int,
    output: int,
    output_kind: int,
    outer: int,
    block: int,
    inner: int,
    largest: float,
    global_scale: float,
) -> None:
    """Quantize each block of `[outer, block, inner]`, which lies together, by a scale of its own.

    The scale is `max(abs(block)) / (largest * global_scale)`, in FP32, rounded to the scales' type; the numbers are
    divided by `scale * global_scale`, and are 0 where that is 0. NaN in a block is NaN in its scale.
    """
    # Two passes over a block that lies in the first-level cache: its largest number is known before the first is
    # divided.
    limit, factor = splat(largest) * splat(global_scale), splat(global_scale)
    for index in range(*share(chunk, outer)):
        base = index * block * inner
        if inner == 1:
            most = splat(float32(0.0))
            for i in range(0, block, LANES):
                most = maximum_or_nan(magnitude(_number(source, source_kind, base + i, block - i)), most)
            divisor = _scale(scales + index, scale_kind, largest_or_nan(most), limit, factor, 1)
            for i in range(0, block, LANES):
                x = _number(source, source_kind, base + i, block - i)
                write_narrow(output + base + i, output_kind, quotient_or_zero(x, in_all_lanes(divisor)), block - i)
        else:
            for column in range(0, inner, LANES):
                count = inner - column
                most = splat(float32(0.0))
                for row in range(block):
                    x = _number(source, source_kind, base + row * inner + column, count)
                    most = maximum_or_nan(magnitude(x), most)
                divisor = _scale(scales + index * inner + column, scale_kind, most, limit, factor, count)
                for row in range(block):
                    at = base + row * inner + column
                    x = _number(source, source_kind, at, count)
                    write_narrow(output + at, output_kind, quotient_or_zero(x, divisor), count)


@inlined
def _number(source: int, kind: int, index: int, count: int) -> Any:
    size = 4 >> (kind & 3)
    return read(source + index * size, size, kind, count)


@inlined
def _scale(address: int, kind: int, most: Any, limit: Any, factor: Any, count: int) -> Any:
    """Write scales; what their numbers are divided by."""
    write_narrow(address, kind, most / limit, count)
    return read_narrow(address, kind, count) * factor


dequantize_numbers, quantize_numbers = _converter(_dequantize), _converter(_quantize)
