"""The functions of one operand that have an accurate vector form."""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu.codes import (
    ABS,
    CEIL,
    ERF,
    EXP,
    FLOOR,
    FP32,
    LOG,
    NEG,
    NONE,
    RECIP,
    RELU,
    ROUND,
    SIGMOID,
    SIGN,
    SQRT,
)
from dryfit_cpu.compiler.compilation import inlined, outlined
from dryfit_cpu.compiler.memory import load, read, store, write
from dryfit_cpu.compiler.power import logarithm
from dryfit_cpu.compiler.vector_functions import (
    ceiling,
    floor,
    magnitude,
    nearest_whole,
    negative,
    square_root,
    where_equal,
    where_less,
    with_sign_of,
)
from dryfit_cpu.compiler.vectors import LANES, maximum, splat
from dryfit_cpu.native.error_function import error_function
from dryfit_cpu.native.exponentials import exponential, sigmoid
from dryfit_cpu.native.functions import activate


@outlined
def unary_function(kind: int, x: Any) -> Any:
    """One of the unary operations, as `dryfit.reference.unary` defines them.

    SQRT, RECIP and what rounds or changes a sign are exact; the others' errors stand at their functions.
    """
    if kind == EXP:
        return exponential(x)
    if kind == LOG:
        return logarithm(x)
    if kind == SQRT:
        return square_root(x)
    if kind == RECIP:
        return splat(float32(1.0)) / x
    if kind == ABS:
        return magnitude(x)
    if kind == NEG:
        return negative(x)
    if kind == FLOOR:
        return floor(x)
    if kind == CEIL:
        return ceiling(x)
    if kind == ROUND:
        return nearest_whole(x)
    if kind == ERF:
        return error_function(x)
    if kind == SIGN:
        zero = splat(float32(0.0))
        ones = where_less(zero, magnitude(x), with_sign_of(splat(float32(1.0)), x), x)
        return where_equal(x, zero, zero, ones)
    return x


@inlined
def apply_function(kind: int, x: Any, alpha: float, beta: float) -> Any:
    """An activation or a unary function."""
    if kind < EXP:
        return activate(kind, x, alpha, beta)
    return unary_function(kind, x)


@outlined
def apply_to_run(kind: int, alpha: float, beta: float, address: int, count: int) -> int:
    """Apply an activation or a unary function to so many FP32 values in memory; returns how many.

    The functions that take little time, or are frequent, have loops of their own.
    """
    if kind == NONE:
        return count
    if kind == RELU:
        _over(_rectified, address, count)
    elif kind == SIGMOID:
        _over(sigmoid, address, count)
    elif kind == EXP:
        _over(exponential, address, count)
    elif kind == SQRT:
        _over(square_root, address, count)
    elif kind == ABS:
        _over(magnitude, address, count)
    else:
        for i in range(0, count, LANES):
            x = apply_function(kind, read(address + i * 4, 4, FP32, count - i), alpha, beta)
            write(address + i * 4, 4, FP32, x, count - i)
    return count


@inlined
def _rectified(x: Any) -> Any:
    return maximum(splat(float32(0.0)), x)


@inlined
def _over(function: Any, address: int, count: int) -> None:
    whole = count // LANES * LANES
    for i in range(0, whole, LANES):
        store(address + i * 4, function(load(address + i * 4)))
    if whole < count:
        x = function(read(address + whole * 4, 4, FP32, count - whole))
        write(address + whole * 4, 4, FP32, x, count - whole)
