"""Element by element: copies between types and layouts, sums, products, scales, activations, over any strides."""

from __future__ import annotations

from typing import Any

from dryfit_cpu.codes import DIV, FIRST, MAX, MIN, MULTIPLY_ADD, PROD, SUB, SUM
from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.memory import read, write
from dryfit_cpu.compiler.vectors import LANES, maximum_or_nan, minimum_or_nan
from dryfit_cpu.native.functions import activate


@native
def pointwise(
    chunk: int,
    chunks: int,
    operation: int,
    a: int,
    a_stride0: int,
    a_stride1: int,
    a_stride2: int,
    a_stride3: int,
    a_kind: int,
    b: int,
    b_stride0: int,
    b_stride1: int,
    b_stride2: int,
    b_stride3: int,
    b_kind: int,
    c: int,
    c_stride0: int,
    c_stride1: int,
    c_stride2: int,
    c_stride3: int,
    c_kind: int,
    output: int,
    output_stride0: int,
    output_stride1: int,
    output_stride2: int,
    output_stride3: int,
    output_kind: int,
    extent0: int,
    extent1: int,
    extent2: int,
    extent3: int,
    activation: int,
    alpha: float,
    beta: float,
) -> None:
    """`output = activation(operation(a, b, c))` over four axes; strides in bytes, 0 where an operand is repeated.

    The chunks cut the axes together, so that they are equal whatever the extents are.
    """
    blocks = (extent3 + LANES - 1) // LANES
    total = extent0 * extent1 * extent2 * blocks
    start, stop = total * chunk // chunks, total * (chunk + 1) // chunks
    row = start // blocks
    i3 = (start - row * blocks) * LANES
    i01 = row // extent2
    i2 = row - i01 * extent2
    i0 = i01 // extent1
    i1 = i01 - i0 * extent1
    for _ in range(start, stop):
        count = extent3 - i3
        x = read(a + i0 * a_stride0 + i1 * a_stride1 + i2 * a_stride2 + i3 * a_stride3, a_stride3, a_kind, count)
        if operation != FIRST:
            y = read(b + i0 * b_stride0 + i1 * b_stride1 + i2 * b_stride2 + i3 * b_stride3, b_stride3, b_kind, count)
            if operation == MULTIPLY_ADD:
                at = c + i0 * c_stride0 + i1 * c_stride1 + i2 * c_stride2 + i3 * c_stride3
                x = x * y + read(at, c_stride3, c_kind, count)
            else:
                x = _combine(operation, x, y)
        to = output + i0 * output_stride0 + i1 * output_stride1 + i2 * output_stride2 + i3 * output_stride3
        write(to, output_stride3, output_kind, activate(activation, x, alpha, beta), count)
        i3 += LANES
        if i3 >= extent3:
            i3, i2 = 0, i2 + 1
            if i2 >= extent2:
                i2, i1 = 0, i1 + 1
                if i1 >= extent1:
                    i1, i0 = 0, i0 + 1


@inlined
def _combine(operation: int, x: Any, y: Any) -> Any:
    """The operation of two operands."""
    if operation == SUM:
        return x + y
    if operation == PROD:
        return x * y
    if operation == MAX:
        return maximum_or_nan(x, y)
    if operation == MIN:
        return minimum_or_nan(x, y)
    if operation == SUB:
        return x - y
    if operation == DIV:
        return x / y
    return x
