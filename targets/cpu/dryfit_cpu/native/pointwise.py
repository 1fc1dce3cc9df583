"""Element by element, over any strides: copies between types and layouts, sums, products, scales, activations.

And quantized values, or sums of two, in another scale.
"""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu.codes import FIRST, FP32, HALF_TO_EVEN, INT8, MULTIPLY_ADD, NONE, SELECT, SUM
from dryfit_cpu.compiler.compilation import inlined, native, outlined
from dryfit_cpu.compiler.integer_memory import PACKED_VALUES, store_packed
from dryfit_cpu.compiler.memory import (
    STACK_BYTES,
    VECTOR_BYTES,
    copy_bytes,
    load,
    move_byte,
    move_short,
    move_word,
    read,
    stack_memory,
    store,
    write,
)
from dryfit_cpu.compiler.vectors import LANES, nearest, splat
from dryfit_cpu.descriptors import Chunk, Elements, Extents, Function, RequantizationSteps
from dryfit_cpu.native.functions import apply_to_run, combine_runs
from dryfit_cpu.native.indices import blocks_of, element, indices, run_of_row, share
from dryfit_cpu.native.requantization import last_limits, limited, requantized, rounded_as, write_limited

_FEW_BYTES = 4 * VECTOR_BYTES
"""Bytes that are copied before a call of the system's copy would have begun: such as a row of a packed panel."""
_PIECE_BLOCKS = STACK_BYTES // VECTOR_BYTES
_MOVED_TOGETHER = 256
"""Values of a row that are copied before those of the next row. With a cache line for each value they take half of the
first-level cache."""


@native
def pointwise(
    chunk: Chunk,
    operation: int,
    a: Elements,
    b: Elements,
    c: Elements,
    output: Elements,
    extents: Extents,
    inner: Function,
    outer: Function,
) -> None:
    """`output = outer(operation(inner(a), b, c))` over four axes; the functions are activations or unary.

    A row is computed in pieces that stay in the first-level cache, each step for a whole piece: in the output where
    that is FP32 without gaps, else in a piece of stack.
    """
    # Step by step over a piece, and not all steps for a vector: so there is a loop for each step, which LLVM unrolls
    # and keeps free of branches, in place of one for each combination of type, operation and function.
    scratch, scratch_b, scratch_c = stack_memory(), stack_memory(), stack_memory()
    is_dense = a.kind == FP32 and a.stride3 == 4
    is_plain = output.kind == FP32 and output.stride3 == 4
    has_function = inner.kind != NONE or outer.kind != NONE
    # One function, or one operation, of what lies together has no steps to share a piece.
    is_function = operation == FIRST and is_dense and is_plain and NONE in (inner.kind, outer.kind)
    is_operation = (
        operation != FIRST and is_dense and is_plain and not has_function and _is_simple(b)
        and (operation not in (MULTIPLY_ADD, SELECT) or _is_simple(c))
    )  # fmt: skip
    blocks = (extents.axis3 + LANES - 1) // LANES
    block, stop = share(chunk, blocks_of(extents, LANES))
    row, first = block // blocks, block % blocks
    i0, i1, i2 = indices(row, extents.axis1, extents.axis2)
    while block < stop:
        if first == blocks:
            first, (i0, i1, i2) = 0, _next_row(i0, i1, i2, extents)
        is_whole = is_function or is_operation
        last = min(blocks, first + stop - block, blocks if is_whole else first + _PIECE_BLOCKS)
        i3 = first * LANES
        count = min(last * LANES, extents.axis3) - i3
        from_a, from_b = element(a, i0, i1, i2, i3), element(b, i0, i1, i2, i3)
        from_c, to = element(c, i0, i1, i2, i3), element(output, i0, i1, i2, i3)
        block, first = block + last - first, last
        if is_function:
            _apply_one(inner, outer, from_a, to, count)
            continue
        piece = to if is_plain else scratch
        source = from_a
        if inner.kind != NONE or not is_dense:
            if not is_dense:
                _copy(from_a, a.stride3, a.kind, piece, 4, FP32, count)
                source = piece
            apply_to_run(inner, source, piece, count)
            source = piece
        if operation != FIRST:
            beside, step = _beside(from_b, b, scratch_b, count)
            third, third_step = from_b, 0
            if operation in (MULTIPLY_ADD, SELECT):
                third, third_step = _beside(from_c, c, scratch_c, count)
            combine_runs(operation, source, beside, step, third, third_step, piece, count)
            source = piece
        apply_to_run(outer, source, piece, count)
        if not is_plain:
            _copy(piece, 4, FP32, to, output.stride3, output.kind, count)


@native
def copy(chunk: Chunk, source: Elements, output: Elements, extents: Extents) -> None:
    """Copy values between types and layouts, over four axes; FP32 to a narrow type rounds to nearest even."""
    # Not a part of `pointwise`: most networks copy something, and this compiles in a fraction of its time.
    if source.kind == output.kind and _copy_pieces(chunk, extents, source, output):
        return
    blocks = (extents.axis3 + LANES - 1) // LANES
    block, stop = share(chunk, blocks_of(extents, LANES))
    row, first = block // blocks, block % blocks
    i0, i1, i2 = indices(row, extents.axis1, extents.axis2)
    while block < stop:
        last, i3 = min(blocks, first + stop - block), first * LANES
        count = min(last * LANES, extents.axis3) - i3
        at, to = element(source, i0, i1, i2, i3), element(output, i0, i1, i2, i3)
        _copy(at, source.stride3, source.kind, to, output.stride3, output.kind, count)
        block, first = block + last - first, 0
        i0, i1, i2 = _next_row(i0, i1, i2, extents)


@inlined
def _next_row(i0: int, i1: int, i2: int, extents: Extents) -> tuple[int, int, int]:
    """The indices of the row behind one: counted on, as rows may be too short to divide for each."""
    i2 += 1
    if i2 < extents.axis2:
        return i0, i1, i2
    if i1 + 1 < extents.axis1:
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
def _copy_rows(chunk: Chunk, extents: Extents, source: Elements, output: Elements) -> None:
    """Copy rows of a few whole vectors: counted on, as dividing for each would take longer than to copy it."""
    size = extents.axis3 * (4 >> (source.kind & 3))
    row, stop = share(chunk, extents.axis0 * extents.axis1 * extents.axis2)
    i0, i1, i2 = indices(row, extents.axis1, extents.axis2)
    while row < stop:
        together = min(extents.axis2 - i2, stop - row)
        at, to = element(source, i0, i1, i2, 0), element(output, i0, i1, i2, 0)
        for _ in range(together):
            for i in range(0, size, VECTOR_BYTES):
                store(to + i, load(at + i))
            at, to = at + source.stride2, to + output.stride2
        row += together
        i0, i1, i2 = _next_row(i0, i1, extents.axis2, extents)


@inlined
def _copy_pieces(chunk: Chunk, extents: Extents, source: Elements, output: Elements) -> bool:
    """Copy values of one type whose runs are short; returns False, and copies nothing, where they are long."""
    if not _is_one_run(source.kind, source.stride3, output.kind, output.stride3):
        _copy_values(chunk, extents, source, output)
        return True
    if _is_few(extents.axis3, source.kind):
        _copy_rows(chunk, extents, source, output)
        return True
    return False


@inlined
def _copy_values(chunk: Chunk, extents: Extents, source: Elements, output: Elements) -> None:
    """Copy values of one type that do not lie together on both sides, one by one: a gather takes longer.

    A piece of the rows of the third axis is copied before the next piece is: what lies together across these rows, such
    as the channels of pixels, is then still in the first-level cache.
    """
    pieces = (extents.axis3 + _MOVED_TOGETHER - 1) // _MOVED_TOGETHER
    for index in range(*share(chunk, extents.axis0 * extents.axis1 * pieces)):
        row = index // pieces
        i0, i1, first = row // extents.axis1, row % extents.axis1, (index - row * pieces) * _MOVED_TOGETHER
        count = min(_MOVED_TOGETHER, extents.axis3 - first)
        for i2 in range(extents.axis2):
            at, to = element(source, i0, i1, i2, first), element(output, i0, i1, i2, first)
            if output.kind == FP32:
                _move(move_word, at, source.stride3, to, output.stride3, count)
            elif output.kind == INT8:
                _move(move_byte, at, source.stride3, to, output.stride3, count)
            else:
                _move(move_short, at, source.stride3, to, output.stride3, count)


@inlined
def _move(move: Any, source: int, stride: int, output: int, output_stride: int, count: int) -> None:
    for _ in range(count):
        move(output, source)
        source, output = source + stride, output + output_stride


@inlined
def _apply_one(first: Function, second: Function, source: int, destination: int, count: int) -> None:
    """Apply the one of two functions that is there."""
    if first.kind != NONE:
        apply_to_run(first, source, destination, count)
    else:
        apply_to_run(second, source, destination, count)


@inlined
def _is_simple(operand: Elements) -> bool:
    """Whether an operand is FP32 that lies together, or one value."""
    return operand.stride3 == 0 or (operand.stride3 == 4 and operand.kind == FP32)


@inlined
def _beside(address: int, operand: Elements, scratch: int, count: int) -> tuple[int, int]:
    """Where an operand lies as FP32, and the bytes from vector to vector: 0 where it is one value."""
    if operand.stride3 == 4 and operand.kind == FP32:
        return address, VECTOR_BYTES
    if operand.stride3 == 0:
        # A vector of the one value: whoever combines the runs reads it like any other, with a step of 0.
        _copy(address, 0, operand.kind, scratch, 4, FP32, LANES)
        return scratch, 0
    _copy(address, operand.stride3, operand.kind, scratch, 4, FP32, count)
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


_LOWEST: Any = float32(-128.0)
_HIGHEST: Any = float32(127.0)
_ZERO: Any = float32(0.0)
_MODEST: Any = float32(10000.0)
"""Multipliers of INT8 values below this give numbers that can be rounded before they are limited."""


@native
def requantize(
    chunk: Chunk,
    source: Elements,
    source_zero: float,
    multiplier: float,
    residual: Elements,
    output: Elements,
    extents: Extents,
    steps: RequantizationSteps,
) -> None:
    """The source less its zero point, times a multiplier, requantized, over four axes; no residual is address 0."""
    is_dense = (
        source.kind == INT8 and source.stride3 == 1 and output.kind == INT8 and output.stride3 == 1
        and (residual.address == 0 or (residual.kind == INT8 and residual.stride3 == 1))
        and steps.rounding == HALF_TO_EVEN and abs(multiplier) < _MODEST and abs(steps.sum_multiplier) < _MODEST
        and abs(steps.residual_multiplier) < _MODEST and abs(steps.last_multiplier) < _MODEST
        and steps.operation <= SUM
    )  # fmt: skip
    rounds_once = not steps.rounds_sum and not steps.rounds_last and steps.zero_point == 0.0
    block, stop = share(chunk, blocks_of(extents, PACKED_VALUES))
    while block < stop:
        i0, i1, i2, i3, count, blocks = run_of_row(block, stop, extents, PACKED_VALUES)
        block += blocks
        at, to = element(source, i0, i1, i2, i3), element(output, i0, i1, i2, i3)
        add = element(residual, i0, i1, i2, i3) if residual.address != 0 else 0
        done = 0
        if is_dense:
            done = count // PACKED_VALUES * PACKED_VALUES
            scale = (source_zero, multiplier)
            # What is asked for each vector costs as much as its arithmetic: without, a sum of 0.8 million values takes
            # 156 us instead of 193 (AMD EPYC, Zen 3), and a third of the instructions.
            if rounds_once and steps.operation == SUM:
                _requantize_run(done, at, add, to, scale, _rounded_once(steps, SUM))
            elif rounds_once:
                _requantize_run(done, at, add, to, scale, _rounded_once(steps, FIRST))
            else:
                _requantize_run(done, at, add, to, scale, steps)
        for i in range(done, count, LANES):
            x = read(at + i * source.stride3, source.stride3, source.kind, count - i)
            x = (x - splat(source_zero)) * splat(multiplier)
            x = requantized(x, add + i * residual.stride3, residual.stride3, residual.kind, count - i, steps)
            to_vector = to + i * output.stride3
            write_limited(to_vector, output.stride3, output.kind, x, count - i, steps.rounding, last_limits(steps))


@inlined
def _rounded_once(steps: RequantizationSteps, operation: int) -> RequantizationSteps:
    """The steps with constants for what a loop would ask."""
    return RequantizationSteps(
        steps.rounding, 0, steps.sum_low, steps.sum_high, steps.sum_multiplier, operation, steps.residual_multiplier,
        steps.residual_zero, steps.low, steps.high, 0, steps.last_multiplier, steps.last_low, steps.last_high,
        _ZERO,
    )  # fmt: skip


@inlined
def _requantize_run(
    count: int, source: int, residual: int, output: int, scale: Any, steps: RequantizationSteps
) -> None:
    """Requantize INT8 values that lie together, rounded to nearest even: as many as are stored at once, or several.

    The scale is the source's zero point and its multiplier.
    """
    low, high, zero_point = last_limits(steps)
    lowest, highest = splat(low), splat(high)
    for i in range(0, count, PACKED_VALUES):
        # Four vectors side by side: what is packed to bytes fills a register, and no vector waits for another.
        a = _scaled(source + i, scale, residual + i, steps)
        b = _scaled(source + i + LANES, scale, residual + i + LANES, steps)
        c = _scaled(source + i + 2 * LANES, scale, residual + i + 2 * LANES, steps)
        d = _scaled(source + i + 3 * LANES, scale, residual + i + 3 * LANES, steps)
        if zero_point == 0.0:
            store_packed(output + i, a, b, c, d, lowest, highest)
        else:
            # Added to what is rounded, since the sum would be rounded otherwise.
            limits = (low, high, zero_point)
            a, b, c, d = _moved(a, limits), _moved(b, limits), _moved(c, limits), _moved(d, limits)
            store_packed(output + i, a, b, c, d, splat(_LOWEST), splat(_HIGHEST))


@inlined
def _scaled(source: int, scale: Any, residual: int, steps: RequantizationSteps) -> Any:
    x = (read(source, 1, INT8, LANES) - splat(scale[0])) * splat(scale[1])
    return rounded_as(HALF_TO_EVEN, x, residual, 1, INT8, LANES, steps)


@inlined
def _moved(x: Any, limits: Any) -> Any:
    low, high, zero_point = limits
    return nearest(limited(x, low, high)) + splat(zero_point)
