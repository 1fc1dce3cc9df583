"""Softmax of INT8 values over one axis: exponentials from a table, exact sums, one quotient for each value."""

from __future__ import annotations

from numba import float32

from dryfit_cpu.codes import INT8
from dryfit_cpu.compiler.byte_tables import load_code, store_integer
from dryfit_cpu.compiler.compilation import native
from dryfit_cpu.compiler.memory import load, load_int, stack_memory, write
from dryfit_cpu.compiler.vectors import LANES, splat
from dryfit_cpu.descriptors import Chunk, Elements, Extents, SampleSteps
from dryfit_cpu.native.indices import element, indices, share
from dryfit_cpu.native.requantization import limited, rounded


@native
def softmax(
    chunk: Chunk, exponentials: int, source: Elements, output: Elements, extents: Extents, steps: SampleSteps
) -> None:
    """The exponentials along the last axis divided by their sum, as INT8 or real numbers.

    `exponentials` is the address of INT64 `[256]`: those of the distances below the largest value.
    """
    scratch = stack_memory()
    extent = extents.axis3
    for index in range(*share(chunk, extents.axis0 * extents.axis1 * extents.axis2)):
        i0, i1, i2 = indices(index, extents.axis1, extents.axis2)
        start, to = element(source, i0, i1, i2, 0), element(output, i0, i1, i2, 0)
        largest = -128
        for i in range(extent):
            largest = max(largest, load_code(start + i * source.stride3))
        # Integers of 31 bits: 2**33 of them fit the sum. A sum in FP32 would depend on its order, and so on the vectors
        # of the machine.
        sum_of_all = 0
        for i in range(extent):
            sum_of_all += load_int(exponentials + 8 * (largest - load_code(start + i * source.stride3)))
        divisor = splat(float32(sum_of_all))
        for i in range(0, extent, LANES):
            count = min(LANES, extent - i)
            # A load for each value: 2 KiB of table stay in the first-level cache, and the quotient is most of the time.
            for lane in range(count):
                code = load_code(start + (i + lane) * source.stride3)
                store_integer(scratch + 4 * lane, load_int(exponentials + 8 * (largest - code)))
            x = limited(load(scratch) / divisor * splat(steps.multiplier), steps.low, steps.high)
            if output.kind == INT8:
                x = rounded(x, steps.rounding) + splat(steps.zero_point)
            write(to + i * output.stride3, output.stride3, output.kind, x, count)
