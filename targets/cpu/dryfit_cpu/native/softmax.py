"""Softmax over one axis of any stride."""

from __future__ import annotations

from numba import float32

from dryfit_cpu.codes import FP32
from dryfit_cpu.compiler.compilation import native, outlined
from dryfit_cpu.compiler.memory import load, read, store, write
from dryfit_cpu.compiler.vectors import LANES, first_lanes, largest_of, maximum, maximum_or_nan, splat, sum_of
from dryfit_cpu.native.exponentials import exponential
from dryfit_cpu.native.indices import indices


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
    """`exp(x - max)` times the reciprocal of its sum, for each index of the three other axes."""
    total = extent0 * extent1 * extent2
    for index in range(total * chunk // chunks, total * (chunk + 1) // chunks):
        i0, i1, i2 = indices(index, extent1, extent2)
        start = source + i0 * source_stride0 + i1 * source_stride1 + i2 * source_stride2
        to = output + i0 * output_stride0 + i1 * output_stride1 + i2 * output_stride2
        if kind == FP32 and source_stride == 4 and output_kind == FP32 and output_stride == 4:
            _softmax_of_run(start, to, extent)
            continue
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
        factor = splat(float32(1.0)) / splat(sum_of(sums))
        for i in range(0, extent, LANES):
            # What a narrow output could have kept is rounded already: there it is computed again.
            if output_kind == FP32:
                y = read(to + i * output_stride, output_stride, FP32, extent - i)
            else:
                y = exponential(read(start + i * source_stride, source_stride, kind, extent - i) - highest)
            write(to + i * output_stride, output_stride, output_kind, y * factor, extent - i)


@outlined
def _softmax_of_run(source: int, output: int, count: int) -> int:
    """Softmax of so many FP32 values that lie together; returns how many. The same bits as for any strides."""
    whole, rest = count // LANES * LANES, count % LANES
    lowest, zero = splat(float32(float("-inf"))), splat(float32(0.0))
    # What is no number is left out here: it makes the sum, and so all results, none.
    largest = lowest
    for i in range(0, whole, LANES):
        largest = maximum(load(source + i * 4), largest)
    if rest:
        largest = maximum(first_lanes(rest, read(source + whole * 4, 4, FP32, rest), lowest), largest)
    highest = splat(largest_of(largest))
    sums = zero
    for i in range(0, whole, LANES):
        y = exponential(load(source + i * 4) - highest)
        sums = sums + y
        store(output + i * 4, y)
    if rest:
        y = exponential(read(source + whole * 4, 4, FP32, rest) - highest)
        sums = sums + first_lanes(rest, y, zero)
        write(output + whole * 4, 4, FP32, y, rest)
    factor = splat(float32(1.0)) / splat(sum_of(sums))
    for i in range(0, whole, LANES):
        store(output + i * 4, load(output + i * 4) * factor)
    if rest:
        write(output + whole * 4, 4, FP32, read(output + whole * 4, 4, FP32, rest) * factor, rest)
    return count
