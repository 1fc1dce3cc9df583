"""Operations of two or three operands that lie together in memory."""

from __future__ import annotations

from typing import Any

from dryfit_cpu.codes import DIV, FP32, MAX, MIN, MULTIPLY_ADD, POW, PROD, SLOPE, SUB, SUM
from dryfit_cpu.compiler.compilation import inlined, outlined
from dryfit_cpu.compiler.memory import VECTOR_BYTES, load, read, store, write
from dryfit_cpu.compiler.power import power
from dryfit_cpu.compiler.vectors import LANES, maximum_or_nan, minimum_or_nan, where_negative


@outlined
def combine_runs(operation: int, a: int, b: int, b_step: int, c: int, c_step: int, to: int, count: int) -> int:
    """`operation(a, b, c)` of so many FP32 values that lie together; returns how many.

    The result may be where a is. Steps are bytes from vector to vector: 0 where an operand is a vector of one value.
    """
    whole = count // LANES * LANES
    if operation == SUM:
        _over(_sum, whole, a, b, b_step, to)
    elif operation == PROD:
        _over(_product, whole, a, b, b_step, to)
    elif operation == SUB:
        _over(_difference, whole, a, b, b_step, to)
    elif operation == DIV:
        _over(_quotient, whole, a, b, b_step, to)
    elif operation == MAX:
        _over(maximum_or_nan, whole, a, b, b_step, to)
    elif operation == MIN:
        _over(minimum_or_nan, whole, a, b, b_step, to)
    elif operation == SLOPE:
        _over(_sloped, whole, a, b, b_step, to)
    elif operation == MULTIPLY_ADD:
        for i in range(0, whole, LANES):
            vector = i // LANES
            y = load(a + i * 4) * load(b + vector * b_step) + load(c + vector * c_step)
            store(to + i * 4, y)
    else:
        whole = 0
    for i in range(whole, count, LANES):
        vector = i // LANES
        x, y = read(a + i * 4, 4, FP32, count - i), _part(b + vector * b_step, b_step, count - i)
        if operation == MULTIPLY_ADD:
            x = x * y + _part(c + vector * c_step, c_step, count - i)
        else:
            x = _combined(operation, x, y)
        write(to + i * 4, 4, FP32, x, count - i)
    return count


@inlined
def _over(function: Any, count: int, a: int, b: int, b_step: int, to: int) -> None:
    for i in range(0, count, LANES):
        store(to + i * 4, function(load(a + i * 4), load(b)))
        b += b_step


@inlined
def _part(address: int, step: int, count: int) -> Any:
    """The first lanes of a vector, or one value in all."""
    return read(address, 4, FP32, count if step == VECTOR_BYTES else LANES)


@inlined
def _sum(x: Any, y: Any) -> Any:
    return x + y


@inlined
def _product(x: Any, y: Any) -> Any:
    return x * y


@inlined
def _difference(x: Any, y: Any) -> Any:
    return x - y


@inlined
def _quotient(x: Any, y: Any) -> Any:
    return x / y


@inlined
def _sloped(x: Any, y: Any) -> Any:
    return where_negative(x, x * y, x)


@inlined
def _combined(operation: int, x: Any, y: Any) -> Any:
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
    return _sloped(x, y)
