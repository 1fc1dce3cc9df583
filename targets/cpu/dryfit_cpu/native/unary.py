"""The functions of one operand that have an accurate vector form."""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu.codes import (
    ABS,
    CEIL,
    CLIP,
    ERF,
    EXP,
    FLOOR,
    FP32,
    GELU_ERF,
    LOG,
    NEG,
    NONE,
    RECIP,
    RELU,
    ROUND,
    SIGMOID,
    SIGN,
    SQRT,
    TANH,
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
from dryfit_cpu.compiler.vectors import LANES, maximum, minimum, splat
from dryfit_cpu.descriptors import Function
from dryfit_cpu.native.activations import activate
from dryfit_cpu.native.error_function import error_function, gaussian_error_linear_unit
from dryfit_cpu.native.exponentials import exponential, hyperbolic_tangent, sigmoid


@outlined
def unary_function(kind: int, x: Any) -> Any:
    """One of the unary operations, as `dryfit.reference.elementwise` defines them.

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
def apply_function(function: Function, x: Any) -> Any:
    """An activation or a unary function."""
    if function.kind < EXP:
        return activate(function, x)
    return unary_function(function.kind, x)


@outlined
def apply_to_run(function: Function, source: int, destination: int, count: int) -> int:
    """Apply an activation or a unary function to so many FP32 values that lie together; returns how many.

    Source and destination may be the same. The functions that take little time, or are frequent, have loops of their
    own.
    """
    kind, alpha, beta = function
    if kind == NONE and source == destination:
        return count
    if kind == RELU:
        _over(_rectified, source, destination, count)
    elif kind == CLIP:
        low, high = splat(alpha), splat(beta)
        whole = count // LANES * LANES
        for i in range(0, whole, LANES):
            store(destination + i * 4, minimum(high, maximum(low, load(source + i * 4))))
        if whole < count:
            x = read(source + whole * 4, 4, FP32, count - whole)
            write(destination + whole * 4, 4, FP32, minimum(high, maximum(low, x)), count - whole)
    elif kind == SIGMOID:
        _over(sigmoid, source, destination, count)
    elif kind == TANH:
        _over(hyperbolic_tangent, source, destination, count)
    elif kind == GELU_ERF:
        _over(gaussian_error_linear_unit, source, destination, count)
    elif kind == EXP:
        _over(exponential, source, destination, count)
    elif kind == ERF:
        _over(error_function, source, destination, count)
    elif kind == SQRT:
        _over(square_root, source, destination, count)
    elif kind == ABS:
        _over(magnitude, source, destination, count)
    elif kind == ROUND:
        _over(nearest_whole, source, destination, count)
    else:
        for i in range(0, count, LANES):
            x = apply_function(function, read(source + i * 4, 4, FP32, count - i))
            write(destination + i * 4, 4, FP32, x, count - i)
    return count


@inlined
def _rectified(x: Any) -> Any:
    return maximum(splat(float32(0.0)), x)


@inlined
def _over(function: Any, source: int, destination: int, count: int) -> None:
    whole = count // LANES * LANES
    for i in range(0, whole, LANES):
        store(destination + i * 4, function(load(source + i * 4)))
    if whole < count:
        x = function(read(source + whole * 4, 4, FP32, count - whole))
        write(destination + whole * 4, 4, FP32, x, count - whole)
