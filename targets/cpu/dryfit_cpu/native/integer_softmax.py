"""Softmax of INT8 values over one axis: exponentials from a table, exact sums, one quotient for each value."""

from __future__ import annotations

from numba import float32

from dryfit_cpu.codes import INT8
from dryfit_cpu.compiler.byte_tables import load_code, store_integer
from dryfit_cpu.compiler.compilation import native
from dryfit_cpu.compiler.memory import load, load_int, stack_memory, write
from dryfit_cpu.compiler.vectors import LANES, splat
from dryfit_cpu.native.indices import indices
from dryfit_cpu.native.requantization import limited, rounded


@native
def softmax(
    chunk: int,
    chunks: int,
    exponentials: int,
    source: int,
    source_stride0: int,
    source_stride1: int,
    source_stride2: int,
    source_stride: int,
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
    multiplier: float,
    low: float,
    high: float,
    zero_point: float,
    rounding: int,
) -> None:
    """For each index of the three other axes the exponentials divided by their sum, as INT8 or real numbers.

    `exponentials` is the address of INT64 `[256]`: those of the distances below the largest value.
    """
    scratch = stack_memory()
    total = extent0 * extent1 * extent2
    for index in range(total * chunk // chunks, total * (chunk + 1) // chunks):
        i0, i1, i2 = indices(index, extent1, extent2)
        start = source + i0 * source_stride0 + i1 * source_stride1 + i2 * source_stride2
        to = output + i0 * output_stride0 + i1 * output_stride1 + i2 * output_stride2
        largest = -128
        for i in range(extent):
            largest = max(largest, load_code(start + i * source_stride))
        sum_of_all = 0
        for i in range(extent):
            sum_of_all += load_int(exponentials + 8 * (largest - load_code(start + i * source_stride)))
        divisor = splat(float32(sum_of_all))
        for i in range(0, extent, LANES):
            count = min(LANES, extent - i)
            for lane in range(count):
                code = load_code(start + (i + lane) * source_stride)
                store_integer(scratch + 4 * lane, load_int(exponentials + 8 * (largest - code)))
            x = limited(load(scratch) / divisor * splat(multiplier), low, high)
            if output_kind == INT8:
                x = rounded(x, rounding) + splat(zero_point)
            write(to + i * output_stride, output_stride, output_kind, x, count)
