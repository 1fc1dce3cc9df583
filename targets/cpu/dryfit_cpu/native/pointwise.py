"""Element by element: copies between types and layouts, sums, products, scales, activations, over any strides."""

from __future__ import annotations

from typing import Any

from dryfit_cpu.codes import FIRST, FP32, INT8, MULTIPLY_ADD, NONE
from dryfit_cpu.compiler.compilation import inlined, native, outlined
from dryfit_cpu.compiler.memory import STACK_BYTES, VECTOR_BYTES, copy_bytes, load, read, stack_memory, store, write
from dryfit_cpu.compiler.vectors import LANES
from dryfit_cpu.native.combination import combine_runs
from dryfit_cpu.native.indices import indices
from dryfit_cpu.native.unary import apply_to_run

_FEW_BYTES = 4 * VECTOR_BYTES
"""Bytes that are copied before a call of the system's copy would have begun: such as a row of a packed panel."""
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
    scratch, scratch_b, scratch_c = stack_memory(), stack_memory(), stack_memory()
    is_copy = operation == FIRST and inner_activation == NONE and activation == NONE
    is_dense = a_kind == FP32 and a_stride3 == 4
    is_plain = output_kind == FP32 and output_stride3 == 4
    has_function = inner_activation != NONE or activation != NONE
    # One function, or one operation, of what lies together has no steps to share a piece: nor has a copy.
    is_function = operation == FIRST and is_dense and is_plain and NONE in (inner_activation, activation)
    is_operation = (
        operation != FIRST and is_dense and is_plain and not has_function and _is_simple(b_stride3, b_kind)
        and (operation != MULTIPLY_ADD or _is_simple(c_stride3, c_kind))
    )  # fmt: skip
    if is_copy and _is_one_run(a_kind, a_stride3, output_kind, output_stride3) and _is_few(extent3, a_kind):
        _copy_rows(
            chunk, chunks, (extent0, extent1, extent2, extent3 * (4 >> (a_kind & 3))),
            (a, a_stride0, a_stride1, a_stride2), (output, output_stride0, output_stride1, output_stride2),
        )  # fmt: skip
        return
    blocks = (extent3 + LANES - 1) // LANES
    total = extent0 * extent1 * extent2 * blocks
    block, stop = total * chunk // chunks, total * (chunk + 1) // chunks
    row, first = block // blocks, block % blocks
    i0, i1, i2 = indices(row, extent1, extent2)
    while block < stop:
        if first == blocks:
            first, (i0, i1, i2) = 0, _next_row(i0, i1, i2, extent1, extent2)
        last = min(
            blocks, first + stop - block, blocks if is_copy or is_function or is_operation else first + _PIECE_BLOCKS
        )
        i3 = first * LANES
        count = min(last * LANES, extent3) - i3
        from_a = a + i0 * a_stride0 + i1 * a_stride1 + i2 * a_stride2 + i3 * a_stride3
        from_b = b + i0 * b_stride0 + i1 * b_stride1 + i2 * b_stride2 + i3 * b_stride3
        from_c = c + i0 * c_stride0 + i1 * c_stride1 + i2 * c_stride2 + i3 * c_stride3
        block, first = block + last - first, last
        to = output + i0 * output_stride0 + i1 * output_stride1 + i2 * output_stride2 + i3 * output_stride3
        if is_copy:
            _copy(from_a, a_stride3, a_kind, to, output_stride3, output_kind, count)
            continue
        if is_function:
            _apply_one((inner_activation, inner_alpha, inner_beta), (activation, alpha, beta), from_a, to, count)
            continue
        piece = to if is_plain else scratch
        source = from_a
        if inner_activation != NONE or not is_dense:
            if not is_dense:
                _copy(from_a, a_stride3, a_kind, piece, 4, FP32, count)
                source = piece
            apply_to_run(inner_activation, inner_alpha, inner_beta, source, piece, count)
            source = piece
        if operation != FIRST:
            beside, step = _beside(from_b, b_stride3, b_kind, scratch_b, count)
            third, third_step = from_b, 0
            if operation == MULTIPLY_ADD:
                third, third_step = _beside(from_c, c_stride3, c_kind, scratch_c, count)
            combine_runs(operation, source, beside, step, third, third_step, piece, count)
            source = piece
        apply_to_run(activation, alpha, beta, source, piece, count)
        if not is_plain:
            _copy(piece, 4, FP32, to, output_stride3, output_kind, count)


@inlined
def _next_row(i0: int, i1: int, i2: int, extent1: int, extent2: int) -> tuple[int, int, int]:
    """The indices of the row behind one: counted on, as rows may be too short to divide for each."""
    i2 += 1
    if i2 < extent2:
        return i0, i1, i2
    if i1 + 1 < extent1:
        return i0, i1 + 1, 0
    return i0 + 1, 0, 0


@inlined
def _is_one_run(kind: int, stride: int, output_kind: int, output_stride: int) -> bool:
    """Whether values of one type lie together on both sides."""
    size = 4 >> (kind & 3)
    return kind == output_kind and stride == size and output_stride == size


@inlined
def _is_few(count: int, kind: int) -> bool:
    """Whether so many values are a few whole vectors."""
    size = count * (4 >> (kind & 3))
    return size <= _FEW_BYTES and size % VECTOR_BYTES == 0


@inlined
def _copy_rows(chunk: int, chunks: int, extents: Any, source: Any, output: Any) -> None:
    """Copy rows of a few whole vectors: counted on, as dividing for each would take longer than to copy it.

    Extents are those of the three axes of rows, and the bytes of a row; source and output are an address, and strides
    of the three axes.
    """
    extent0, extent1, extent2, size = extents
    rows = extent0 * extent1 * extent2
    row, stop = rows * chunk // chunks, rows * (chunk + 1) // chunks
    i0, i1, i2 = indices(row, extent1, extent2)
    while row < stop:
        together = min(extent2 - i2, stop - row)
        at = source[0] + i0 * source[1] + i1 * source[2] + i2 * source[3]
        to = output[0] + i0 * output[1] + i1 * output[2] + i2 * output[3]
        for _ in range(together):
            for i in range(0, size, VECTOR_BYTES):
                store(to + i, load(at + i))
            at, to = at + source[3], to + output[3]
        row += together
        i0, i1, i2 = _next_row(i0, i1, extent2, extent1, extent2)


@inlined
def _apply_one(first: Any, second: Any, source: int, destination: int, count: int) -> None:
    """Apply the one of two functions that is there."""
    kind, alpha, beta = first
    if kind != NONE:
        apply_to_run(kind, alpha, beta, source, destination, count)
    else:
        kind, alpha, beta = second
        apply_to_run(kind, alpha, beta, source, destination, count)


@inlined
def _is_simple(stride: int, kind: int) -> bool:
    """Whether an operand is FP32 that lies together, or one value."""
    return stride == 0 or (stride == 4 and kind == FP32)


@inlined
def _beside(address: int, stride: int, kind: int, scratch: int, count: int) -> tuple[int, int]:
    """Where an operand lies as FP32, and the bytes from vector to vector: 0 where it is one value."""
    if stride == 4 and kind == FP32:
        return address, VECTOR_BYTES
    if stride == 0:
        _copy(address, 0, kind, scratch, 4, FP32, LANES)
        return scratch, 0
    _copy(address, stride, kind, scratch, 4, FP32, count)
    return scratch, VECTOR_BYTES


@outlined
def _copy(source: int, stride: int, kind: int, output: int, output_stride: int, output_kind: int, count: int) -> int:
    """Copy so many values; returns how many."""
    if _is_one_run(kind, stride, output_kind, output_stride):
        copy_bytes(output, source, count * (4 >> (kind & 3)))
        return count
    if kind == INT8 and stride == 1 and output_kind == FP32 and output_stride == 4:
        _widen_bytes(source, output, count)
        return count
    for i in range(0, count, LANES):
        x = read(source + i * stride, stride, kind, count - i)
        write(output + i * output_stride, output_stride, output_kind, x, count - i)
    return count


@inlined
def _widen_bytes(source: int, output: int, count: int) -> None:
    whole = count // LANES * LANES
    for i in range(0, whole, LANES):
        store(output + i * 4, read(source + i, 1, INT8, LANES))
    if whole < count:
        write(output + whole * 4, 4, FP32, read(source + whole, 1, INT8, count - whole), count - whole)
