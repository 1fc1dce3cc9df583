"""Reductions over any axes."""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu.codes import MAX, MIN, PROD, SUM
from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.memory import load_int, read, write
from dryfit_cpu.compiler.vector_functions import largest_or_nan_of, product_of, smallest_or_nan_of
from dryfit_cpu.compiler.vectors import LANES, first_lanes, maximum_or_nan, minimum_or_nan, splat, sum_of
from dryfit_cpu.native.unary import apply_function

_SUMS = 4
"""Partial results side by side: one alone would wait for each addition."""


@native
def reduce(
    chunk: int,
    chunks: int,
    operation: int,
    source: int,
    stride0: int,
    stride1: int,
    stride2: int,
    kind: int,
    output: int,
    output_stride0: int,
    output_stride1: int,
    output_stride2: int,
    output_kind: int,
    extent0: int,
    extent1: int,
    extent2: int,
    places: int,
    place_count: int,
    place_words: int,
    run: int,
    run_stride: int,
    is_across: int,
    divisor: float,
    function: int,
    alpha: float,
    beta: float,
) -> None:
    """`output = function(reduction / divisor)` for each index of three axes.

    What is reduced begins at `place_count` byte offsets, the first words of as many rows of a table, and goes on from
    each for `run` elements. A vector lies along
    the run, or with `is_across` along the last of the three axes. The order depends on the shapes alone.
    """
    step = 1 if is_across else LANES
    lane_stride = stride2 if is_across else run_stride
    blocks = (extent2 + LANES - 1) // LANES if is_across else extent2
    whole = run // (_SUMS * step) * (_SUMS * step)
    nothing = _neutral(operation)
    total = extent0 * extent1 * blocks
    for index in range(total * chunk // chunks, total * (chunk + 1) // chunks):
        i01 = index // blocks
        i2 = (index - i01 * blocks) * (LANES if is_across else 1)
        i0 = i01 // extent1
        i1 = i01 - i0 * extent1
        start = source + i0 * stride0 + i1 * stride1 + i2 * stride2
        lanes = extent2 - i2 if is_across else LANES
        value = nothing
        for place in range(place_count):
            at = start + load_int(places + place * place_words * 8)
            a, b, c, d = nothing, nothing, nothing, nothing
            hop = step * run_stride
            for _ in range(0, whole, _SUMS * step):
                a = _combine(operation, a, read(at, lane_stride, kind, lanes))
                b = _combine(operation, b, read(at + hop, lane_stride, kind, lanes))
                c = _combine(operation, c, read(at + 2 * hop, lane_stride, kind, lanes))
                d = _combine(operation, d, read(at + 3 * hop, lane_stride, kind, lanes))
                at += _SUMS * hop
            for i in range(whole, run, step):
                count = lanes if is_across else run - i
                x = read(at, lane_stride, kind, count)
                a = _combine(operation, a, first_lanes(count, x, nothing))
                at += hop
            both = _combine(operation, _combine(operation, a, b), _combine(operation, c, d))
            value = _combine(operation, value, both)
        if not is_across:
            value = splat(_over_lanes(operation, value))
        value = apply_function(function, value / splat(divisor), alpha, beta)
        to = output + i0 * output_stride0 + i1 * output_stride1 + i2 * output_stride2
        write(to, output_stride2, output_kind, value, lanes if is_across else 1)


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
