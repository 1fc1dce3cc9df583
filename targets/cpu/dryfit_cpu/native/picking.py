"""Elements of an input, picked along each axis by tables of places, and elements that a condition chooses."""

from __future__ import annotations

from dryfit_cpu.compiler.byte_tables import load_code
from dryfit_cpu.compiler.compilation import native
from dryfit_cpu.compiler.memory import copy_bytes, load_int
from dryfit_cpu.native.indices import indices


@native
def pick(
    chunk: int,
    chunks: int,
    source: int,
    places0: int,
    places1: int,
    places2: int,
    places3: int,
    fill: int,
    output: int,
    output_stride0: int,
    output_stride1: int,
    output_stride2: int,
    output_stride3: int,
    extent0: int,
    extent1: int,
    extent2: int,
    extent3: int,
    size: int,
) -> None:
    """Copy pieces of `size` bytes from the sum of four byte offsets, or from `fill` where one of these is negative.

    Places are addresses of INT64 tables, one offset for each index of an axis.
    """
    total = extent0 * extent1 * extent2
    for index in range(total * chunk // chunks, total * (chunk + 1) // chunks):
        i0, i1, i2 = indices(index, extent1, extent2)
        a, b, c = load_int(places0 + 8 * i0), load_int(places1 + 8 * i1), load_int(places2 + 8 * i2)
        to = output + i0 * output_stride0 + i1 * output_stride1 + i2 * output_stride2
        is_outside = min(a, b, c) < 0
        for i3 in range(extent3):
            d = load_int(places3 + 8 * i3)
            at = fill if is_outside or d < 0 else source + a + b + c + d
            copy_bytes(to + i3 * output_stride3, at, size)


@native
def select(
    chunk: int,
    chunks: int,
    condition: int,
    condition_stride0: int,
    condition_stride1: int,
    condition_stride2: int,
    condition_stride3: int,
    first: int,
    first_stride0: int,
    first_stride1: int,
    first_stride2: int,
    first_stride3: int,
    second: int,
    second_stride0: int,
    second_stride1: int,
    second_stride2: int,
    second_stride3: int,
    output: int,
    output_stride0: int,
    output_stride1: int,
    output_stride2: int,
    output_stride3: int,
    extent0: int,
    extent1: int,
    extent2: int,
    extent3: int,
    size: int,
) -> None:
    """Copy an element of the first operand where the condition's byte is not 0, else of the second."""
    total = extent0 * extent1 * extent2
    for index in range(total * chunk // chunks, total * (chunk + 1) // chunks):
        i0, i1, i2 = indices(index, extent1, extent2)
        asked = condition + i0 * condition_stride0 + i1 * condition_stride1 + i2 * condition_stride2
        one = first + i0 * first_stride0 + i1 * first_stride1 + i2 * first_stride2
        other = second + i0 * second_stride0 + i1 * second_stride1 + i2 * second_stride2
        to = output + i0 * output_stride0 + i1 * output_stride1 + i2 * output_stride2
        for i3 in range(extent3):
            is_first = load_code(asked + i3 * condition_stride3) != 0
            at = one + i3 * first_stride3 if is_first else other + i3 * second_stride3
            copy_bytes(to + i3 * output_stride3, at, size)
