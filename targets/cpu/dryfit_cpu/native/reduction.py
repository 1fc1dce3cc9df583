"""Reductions over any axes."""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu.codes import MAX, MIN, PROD, SUM
from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.memory import load_int, read, write
from dryfit_cpu.compiler.vectors import (
    LANES,
    first_lanes,
    largest_or_nan_of,
    maximum_or_nan,
    minimum_or_nan,
    product_of,
    smallest_or_nan_of,
    splat,
    sum_of,
)
from dryfit_cpu.descriptors import Chunk, Elements, Extents, Function, WordTable
from dryfit_cpu.native.indices import element, share
from dryfit_cpu.native.unary import apply_function

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
