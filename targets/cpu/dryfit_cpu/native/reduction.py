"""Reductions over any axes, and softmax over one; of INT8 values by exponentials from a table, and exact sums."""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu.codes import FP32, INT8, MAX, MIN, PROD, SUM
from dryfit_cpu.compiler.byte_tables import load_code, store_integer
from dryfit_cpu.compiler.compilation import inlined, native, outlined
from dryfit_cpu.compiler.memory import load, load_int, read, stack_memory, store, write
from dryfit_cpu.compiler.vectors import (
    LANES,
    first_lanes,
    largest_of,
    largest_or_nan_of,
    maximum,
    maximum_or_nan,
    minimum_or_nan,
    product_of,
    smallest_or_nan_of,
    splat,
    sum_of,
)
from dryfit_cpu.descriptors import Chunk, Elements, Extents, Function, SampleSteps, WordTable
from dryfit_cpu.native.exponentials import exponential_below_one
from dryfit_cpu.native.functions import apply_function
from dryfit_cpu.native.indices import element, indices, share
from dryfit_cpu.native.requantization import limited, rounded

_SUMS = 4
"""Partial results side by side: one alone would wait for each addition."""


@native
def reduce(
    chunk: Chunk,
    operation: int,
    source: Elements,
    output: Elements,
    extents: Extents,
    places: WordTable,
    place_words: int,
    is_across: int,
    divisor: float,
    function: Function,
) -> None:
    """`output = function(reduction / divisor)` for each index of three axes.

    What is reduced begins at the byte offsets that are the first words of the places' rows, and goes on from each along
    the last axis. A vector lies along that, or with `is_across` along the last of the three axes. The order depends on
    the shapes alone.
    """
    run, run_stride = extents.axis3, source.stride3
    step = 1 if is_across else LANES
    lane_stride = source.stride2 if is_across else run_stride
    blocks = (extents.axis2 + LANES - 1) // LANES if is_across else extents.axis2
    whole = run // (_SUMS * step) * (_SUMS * step)
    hop = step * run_stride
    nothing = _neutral(operation)
    # Results are shared among threads, never a result: halves of a sum would add up in another order.
    for index in range(*share(chunk, extents.axis0 * extents.axis1 * blocks)):
        i01 = index // blocks
        i2 = (index - i01 * blocks) * (LANES if is_across else 1)
        i0 = i01 // extents.axis1
        i1 = i01 - i0 * extents.axis1
        start, to = element(source, i0, i1, i2, 0), element(output, i0, i1, i2, 0)
        lanes = extents.axis2 - i2 if is_across else LANES
        value = nothing
        for place in range(places.rows):
            at = start + load_int(places.address + place * place_words * 8)
            a, b, c, d = nothing, nothing, nothing, nothing
            for _ in range(0, whole, _SUMS * step):
                a = _combine(operation, a, read(at, lane_stride, source.kind, lanes))
                b = _combine(operation, b, read(at + hop, lane_stride, source.kind, lanes))
                c = _combine(operation, c, read(at + 2 * hop, lane_stride, source.kind, lanes))
                d = _combine(operation, d, read(at + 3 * hop, lane_stride, source.kind, lanes))
                at += _SUMS * hop
            for i in range(whole, run, step):
                count = lanes if is_across else run - i
                x = read(at, lane_stride, source.kind, count)
                a = _combine(operation, a, first_lanes(count, x, nothing))
                at += hop
            both = _combine(operation, _combine(operation, a, b), _combine(operation, c, d))
            value = _combine(operation, value, both)
        # The lanes are added last, in a fixed order: which thread had the work makes no difference, only the tier does.
        if not is_across:
            value = splat(_over_lanes(operation, value))
        value = apply_function(function, value / splat(divisor))
        write(to, output.stride2, output.kind, value, lanes if is_across else 1)


@inlined
def _neutral(operation: int) -> Any:
    """What changes no result."""
    if operation == SUM:
        return splat(float32(0.0))
    if operation == PROD:
        return splat(float32(1.0))
    return splat(float32(float("-inf"))) if operation == MAX else splat(float32(float("inf")))


@inlined
def _combine(operation: int, x: Any, y: Any) -> Any:
    if operation == SUM:
        return x + y
    if operation == MAX:
        return maximum_or_nan(x, y)
    if operation == MIN:
        return minimum_or_nan(x, y)
    return x * y


@inlined
def _over_lanes(operation: int, x: Any) -> Any:
    if operation == SUM:
        return sum_of(x)
    if operation == MAX:
        return largest_or_nan_of(x)
    if operation == MIN:
        return smallest_or_nan_of(x)
    return product_of(x)


@native
def softmax(chunk: Chunk, source: Elements, output: Elements, extents: Extents) -> None:
    """`exp(x - max)` times the reciprocal of its sum along the last axis, for each index of the three others."""
    extent = extents.axis3
    for index in range(*share(chunk, extents.axis0 * extents.axis1 * extents.axis2)):
        i0, i1, i2 = indices(index, extents.axis1, extents.axis2)
        start, to = element(source, i0, i1, i2, 0), element(output, i0, i1, i2, 0)
        if source.kind == FP32 and source.stride3 == 4 and output.kind == FP32 and output.stride3 == 4:
            _softmax_of_run(start, to, extent)
            continue
        lowest = splat(float32(float("-inf")))
        largest = lowest
        for i in range(0, extent, LANES):
            x = read(start + i * source.stride3, source.stride3, source.kind, extent - i)
            largest = maximum_or_nan(largest, first_lanes(extent - i, x, lowest))
        highest = splat(largest_of(largest))
        sums = splat(float32(0.0))
        for i in range(0, extent, LANES):
            x = read(start + i * source.stride3, source.stride3, source.kind, extent - i)
            y = exponential_below_one(x - highest)
            sums = sums + first_lanes(extent - i, y, splat(float32(0.0)))
            if output.kind == FP32:
                write(to + i * output.stride3, output.stride3, FP32, y, extent - i)
        # One division, and a product for each value: about one unit in the last place more than a quotient for each.
        factor = splat(float32(1.0)) / splat(sum_of(sums))
        for i in range(0, extent, LANES):
            # What a narrow output could have kept is rounded already: there it is computed again.
            if output.kind == FP32:
                y = read(to + i * output.stride3, output.stride3, FP32, extent - i)
            else:
                y = exponential_below_one(
                    read(start + i * source.stride3, source.stride3, source.kind, extent - i) - highest
                )
            write(to + i * output.stride3, output.stride3, output.kind, y * factor, extent - i)


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
        y = exponential_below_one(load(source + i * 4) - highest)
        sums = sums + y
        store(output + i * 4, y)
    if rest:
        y = exponential_below_one(read(source + whole * 4, 4, FP32, rest) - highest)
        sums = sums + first_lanes(rest, y, zero)
        write(output + whole * 4, 4, FP32, y, rest)
    factor = splat(float32(1.0)) / splat(sum_of(sums))
    for i in range(0, whole, LANES):
        store(output + i * 4, load(output + i * 4) * factor)
    if rest:
        write(output + whole * 4, 4, FP32, read(output + whole * 4, 4, FP32, rest) * factor, rest)
    return count


@native
def softmax_of_codes(
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
