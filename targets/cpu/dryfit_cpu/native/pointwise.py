"""Element by element: copies between types and layouts, sums, products, scales, activations, over any strides."""

from __future__ import annotations

from typing import Any

from dryfit_cpu.codes import DIV, FIRST, FP32, MAX, MIN, MULTIPLY_ADD, NONE, POW, PROD, SLOPE, SUB, SUM
from dryfit_cpu.compiler.compilation import inlined, native, outlined
from dryfit_cpu.compiler.memory import STACK_BYTES, VECTOR_BYTES, read, stack_memory, write
from dryfit_cpu.compiler.power import power
from dryfit_cpu.compiler.vectors import LANES, maximum_or_nan, minimum_or_nan, where_negative
from dryfit_cpu.native.unary import apply_to_run

_PIECE_BLOCKS = STACK_BYTES // VECTOR_BYTES


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
    inner_activation: int,
    inner_alpha: float,
    inner_beta: float,
    activation: int,
    alpha: float,
    beta: float,
) -> None:
    """`output = activation(operation(inner_activation(a), b, c))` over four axes.

    Strides are in bytes, 0 where an operand is repeated. Activations are unary functions too. A row is computed in
    pieces that stay in the first-level cache, each step for a whole piece: in the output where that is FP32 without
    gaps, else in a piece of stack.
    """
    scratch = stack_memory()
    is_copy = operation == FIRST and inner_activation == NONE and activation == NONE
    reads_a = a_kind == FP32 and a_stride3 == 4 and inner_activation == NONE and operation != FIRST
    is_plain = output_kind == FP32 and output_stride3 == 4
    blocks = (extent3 + LANES - 1) // LANES
    total = extent0 * extent1 * extent2 * blocks
    block, stop = total * chunk // chunks, total * (chunk + 1) // chunks
    while block < stop:
        row = block // blocks
        first = block - row * blocks
        # A copy has no steps to share a piece.
        last = min(blocks, first + stop - block, blocks if is_copy else first + _PIECE_BLOCKS)
        block += last - first
        i01 = row // extent2
        i2 = row - i01 * extent2
        i0 = i01 // extent1
        i1 = i01 - i0 * extent1
        i3 = first * LANES
        count = min(last * LANES, extent3) - i3
        from_a = a + i0 * a_stride0 + i1 * a_stride1 + i2 * a_stride2 + i3 * a_stride3
        from_b = b + i0 * b_stride0 + i1 * b_stride1 + i2 * b_stride2 + i3 * b_stride3
        from_c = c + i0 * c_stride0 + i1 * c_stride1 + i2 * c_stride2 + i3 * c_stride3
        to = output + i0 * output_stride0 + i1 * output_stride1 + i2 * output_stride2 + i3 * output_stride3
        if is_copy:
            _copy(from_a, a_stride3, a_kind, to, output_stride3, output_kind, count)
            continue
        piece = to if is_plain else scratch
        source = piece
        if reads_a:
            source = from_a
        else:
            _copy(from_a, a_stride3, a_kind, piece, 4, FP32, count)
        apply_to_run(inner_activation, inner_alpha, inner_beta, piece, count)
        if operation != FIRST:
            for i in range(0, count, LANES):
                x = read(source + i * 4, 4, FP32, count - i)
                y = read(from_b + i * b_stride3, b_stride3, b_kind, count - i)
                if operation == MULTIPLY_ADD:
                    x = x * y + read(from_c + i * c_stride3, c_stride3, c_kind, count - i)
                else:
                    x = _combine(operation, x, y)
                write(piece + i * 4, 4, FP32, x, count - i)
        apply_to_run(activation, alpha, beta, piece, count)
        if not is_plain:
            _copy(piece, 4, FP32, to, output_stride3, output_kind, count)


@outlined
def _copy(source: int, stride: int, kind: int, output: int, output_stride: int, output_kind: int, count: int) -> int:
    """Copy so many values; returns how many."""
    for i in range(0, count, LANES):
        x = read(source + i * stride, stride, kind, count - i)
        write(output + i * output_stride, output_stride, output_kind, x, count - i)
    return count


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
    if operation == POW:
        return power(x, y)
    if operation == SLOPE:
        return where_negative(x, x * y, x)
    return x
