"""Softmax over one axis of any stride."""

from __future__ import annotations

from numba import float32

from dryfit_cpu.codes import FP32
from dryfit_cpu.compiler.compilation import native
from dryfit_cpu.compiler.memory import read, write
from dryfit_cpu.compiler.vectors import LANES, first_lanes, largest_of, maximum_or_nan, splat, sum_of
from dryfit_cpu.native.exponentials import exponential


@native
def softmax(
    chunk: int,
    chunks: int,
    source: int,
    source_stride0: int,
    source_stride1: int,
    source_stride2: int,
    source_stride: int,
    kind: int,
    output: int,
    output_stride0: int,
    output_stride1: int,
    output_stride2: int,
    output_stride: int,
    output_kind: int,
    extent0: int,
    extent1: int,
    extent2: int,
    extent: int,
) -> None:
    """`exp(x - max)` divided by its sum, for each index of the three other axes."""
    total = extent0 * extent1 * extent2
    for index in range(total * chunk // chunks, total * (chunk + 1) // chunks):
        i01 = index // extent2
        i2 = index - i01 * extent2
        i0 = i01 // extent1
        i1 = i01 - i0 * extent1
        start = source + i0 * source_stride0 + i1 * source_stride1 + i2 * source_stride2
        to = output + i0 * output_stride0 + i1 * output_stride1 + i2 * output_stride2
        lowest = splat(float32(float("-inf")))
        largest = lowest
        for i in range(0, extent, LANES):
            x = read(start + i * source_stride, source_stride, kind, extent - i)
            largest = maximum_or_nan(largest, first_lanes(extent - i, x, lowest))
        highest = splat(largest_of(largest))
        sums = splat(float32(0.0))
        for i in range(0, extent, LANES):
            x = read(start + i * source_stride, source_stride, kind, extent - i)
            y = exponential(x - highest)
            sums = sums + first_lanes(extent - i, y, splat(float32(0.0)))
            if output_kind == FP32:
                write(to + i * output_stride, output_stride, FP32, y, extent - i)
        divisor = splat(sum_of(sums))
        for i in range(0, extent, LANES):
            # What a narrow output could have kept is rounded already: there it is computed again.
            if output_kind == FP32:
                y = read(to + i * output_stride, output_stride, FP32, extent - i)
            else:
                y = exponential(read(start + i * source_stride, source_stride, kind, extent - i) - highest)
            write(to + i * output_stride, output_stride, output_kind, y / divisor, extent - i)
