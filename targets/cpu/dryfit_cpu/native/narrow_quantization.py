"""Quantized numbers of any element type and any granularity of scales: to FP32, FP16 and BF16, and from these."""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.memory import read, write
from dryfit_cpu.compiler.narrow_numbers import (
    in_all_lanes,
    largest_or_nan,
    magnitude,
    quotient_or_zero,
    read_narrow,
    read_scale,
    write_narrow,
)
from dryfit_cpu.compiler.vectors import LANES, maximum_or_nan, splat
from dryfit_cpu.descriptors import Chunk, Scales
from dryfit_cpu.native.indices import share


@inlined
def _scales_of(index: int, rows: int, scales: Scales) -> int:
    """The address of the scales of a row, of which there are so many in each outer part."""
    one = index // rows
    return scales.address + one * scales.outer_stride + (index - one * rows) // scales.block * scales.row_stride


@native
def dequantize(
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
    """`x * scale` in FP32, rounded once.

    The numbers are `[outer, rows, inner]`, together in memory, of which the first `count` are there. A scale serves a
    block of rows, and all of a row or, where its stride is not 0, one column.
    """
    # Whatever the granularity, per tensor, per axis or per block, it is this one geometry with other strides.
    size = 4 >> (output_kind & 3)
    for index in range(*share(chunk, outer * rows)):
        start, factors = index * inner, _scales_of(index, rows, scales)
        stop = min(start + inner, count)
        for i in range(start, stop, LANES):
            factor = read_scale(factors + (i - start) * scales.stride, scales.stride, scales.kind, stop - i)
            x = read_narrow(source + i, source_kind, stop - i) * factor
            write(output + i * size, size, output_kind, x, stop - i)


@native
def quantize(
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
    """`saturate(round(x / scale))`, a division in FP32, ties to even; geometry as in `dequantize`."""
    # Divided, and not multiplied by a reciprocal: that is rounded itself, and would give another neighbour at ties.
    size = 4 >> (source_kind & 3)
    for index in range(*share(chunk, outer * rows)):
        start, factors = index * inner, _scales_of(index, rows, scales)
        stop = min(start + inner, count)
        for i in range(start, stop, LANES):
            factor = read_scale(factors + (i - start) * scales.stride, scales.stride, scales.kind, stop - i)
            x = read(source + i * size, size, source_kind, stop - i) / factor
            write_narrow(output + i, output_kind, x, stop - i)


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
