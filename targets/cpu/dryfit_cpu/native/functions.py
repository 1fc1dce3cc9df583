"""Activations, other functions of one operand that have an accurate vector form, and operations of two or three.

Activations follow a sum, a maximum or an operation in the same pass; all of them go over runs of memory.
"""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu import codes
from dryfit_cpu.compiler.compilation import inlined, outlined
from dryfit_cpu.compiler.memory import VECTOR_BYTES, load, read, store, write
from dryfit_cpu.compiler.vectors import (
    LANES,
    ceiling,
    floor,
    magnitude,
    maximum,
    maximum_or_nan,
    minimum,
    minimum_or_nan,
    nearest_whole,
    negative,
    splat,
    square_root,
    where_equal,
    where_less,
    where_negative,
    with_sign_of,
)
from dryfit_cpu.compiler.wide_numbers import logarithm, power
from dryfit_cpu.descriptors import Function
from dryfit_cpu.native.exponentials import (
    error_function,
    exponential,
    exponential_minus_one,
    gaussian_error_linear_unit,
    hyperbolic_tangent,
    sigmoid,
    soft_maximum,
)

_INFINITY: Any = float32(float("inf"))
_GELU_SCALE, _GELU_CUBE = float32(1.5957691216057308), float32(0.044715)
"""2 * sqrt(2 / pi), and the weight of the cube."""


@inlined
def activate(function: Function, x: Any) -> Any:
    """One of the activations, as `dryfit.reference.activation` defines them.

    The frequent ones become part of whatever calls this. The others are functions of their own: in each of the kernels
    that have an activation, and in each place of it, their polynomials would be most of the code.
    """
    kind, alpha, beta = function
    if kind == codes.NONE:
        return x
    if kind == codes.RELU:
        return maximum(splat(float32(0.0)), x)
    if kind == codes.CLIP:
        return minimum(splat(beta), maximum(splat(alpha), x))
    if kind == codes.LEAKY_RELU:
        return where_negative(x, splat(alpha) * x, x)
    if kind == codes.SIGMOID:
        return sigmoid(x)
    if kind == codes.TANH:
        return hyperbolic_tangent(x)
    if kind == codes.HARD_SIGMOID:
        return _hard_sigmoid(x, splat(alpha), splat(beta))
    if kind == codes.HARD_SWISH:
        return _hard_swish(x, splat(alpha), splat(beta))
    return rare_activation(kind, x, alpha, beta)


@inlined
def _hard_sigmoid(x: Any, slope: Any, shift: Any) -> Any:
    return minimum(splat(float32(1.0)), maximum(splat(float32(0.0)), slope * x + shift))


@inlined
def _hard_swish(x: Any, slope: Any, shift: Any) -> Any:
    return x * _hard_sigmoid(x, slope, shift)


@inlined
def _swish(x: Any, slope: Any, _: Any) -> Any:
    return x * sigmoid(slope * x)


@outlined
def rare_activation(kind: int, x: Any, alpha: float, beta: float) -> Any:
    """One of the activations, as `dryfit.reference.activation` defines them."""
    zero = splat(float32(0.0))
    if kind in (codes.ELU, codes.SELU):
        below = splat(alpha) * exponential_minus_one(where_negative(x, x, zero))
        y = where_negative(x, below, x)
        return y * splat(beta) if kind == codes.SELU else y
    if kind == codes.SOFTPLUS:
        return splat(alpha) * soft_maximum(splat(beta) * x)
    if kind == codes.SOFTSIGN:
        return x / (splat(float32(1.0)) + magnitude(x))
    if kind == codes.SCALED_TANH:
        return splat(alpha) * hyperbolic_tangent(splat(beta) * x)
    if kind == codes.GELU_ERF:
        return gaussian_error_linear_unit(x)
    if kind == codes.GELU_TANH:
        return _approximate_gelu(x)
    if kind == codes.SWISH:
        return _swish(x, splat(alpha), zero)
    return where_less(splat(alpha), x, x, zero)


@inlined
def _approximate_gelu(x: Any) -> Any:
    """GELU by tanh: x * (1 + tanh(u)) / 2 is x * sigmoid(2u).

    Within 3 units in the last place above 0; below within 3e-7 and, above -5, 5e-6 of the value.
    """
    doubled = splat(_GELU_SCALE) * (x + splat(_GELU_CUBE) * (x * x * x))
    return x * sigmoid(doubled)


@outlined
def unary_function(kind: int, x: Any) -> Any:
    """One of the unary operations, as `dryfit.reference.elementwise` defines them.

    SQRT, RECIP and what rounds or changes a sign are exact; the others' errors stand at their functions.
    """
    if kind == codes.EXP:
        return exponential(x)
    if kind == codes.LOG:
        return logarithm(x)
    if kind == codes.SQRT:
        return square_root(x)
    if kind == codes.RECIP:
        return splat(float32(1.0)) / x
    if kind == codes.ABS:
        return magnitude(x)
    if kind == codes.NEG:
        return negative(x)
    if kind == codes.FLOOR:
        return floor(x)
    if kind == codes.CEIL:
        return ceiling(x)
    if kind == codes.ROUND:
        return nearest_whole(x)
    if kind == codes.ERF:
        return error_function(x)
    if kind == codes.SIGN:
        zero = splat(float32(0.0))
        ones = where_less(zero, magnitude(x), with_sign_of(splat(float32(1.0)), x), x)
        return where_equal(x, zero, zero, ones)
    if kind >= codes.IS_NAN:
        return _truth(kind, x)
    return x


@inlined
def _truth(kind: int, x: Any) -> Any:
    """1 where a value is what is asked for, else 0."""
    zero, one = splat(float32(0.0)), splat(float32(1.0))
    if kind == codes.IS_NAN:
        return where_equal(x, x, zero, one)
    if kind == codes.IS_INFINITE:
        return where_equal(magnitude(x), splat(_INFINITY), one, zero)
    if kind == codes.IS_ZERO:
        return where_equal(x, zero, one, zero)
    return where_equal(x, zero, zero, one)


@outlined
def activate_sums(function: Function, sums: int, count: int) -> int:
    """Apply an activation to so many sums, whole vectors of FP32 values that lie together; returns how many.

    Of many sums at a time the processor works on one vector's chain of instructions while it waits for another's.
    """
    if function.kind == codes.GELU_ERF:
        for i in range(0, count, LANES):
            store(sums + i * 4, gaussian_error_linear_unit(load(sums + i * 4)))
    elif function.kind != codes.NONE:
        for i in range(0, count, LANES):
            store(sums + i * 4, activate(function, load(sums + i * 4)))
    return count


@inlined
def apply_function(function: Function, x: Any) -> Any:
    """An activation or a unary function."""
    if function.kind < codes.EXP:
        return activate(function, x)
    return unary_function(function.kind, x)


@outlined
def apply_to_run(function: Function, source: int, destination: int, count: int) -> int:
    """Apply an activation or a unary function to so many FP32 values that lie together; returns how many.

    Source and destination may be the same. The functions that take little time, or are frequent, have loops of their
    own.
    """
    kind, alpha, beta = function
    # A loop for each frequent function: asked once a run, which it is costs nothing; asked for each vector, it would be
    # as much work as functions of a few instructions are.
    if kind == codes.NONE and source == destination:
        return count
    if kind == codes.RELU:
        _over(_rectified, source, destination, count)
    elif kind == codes.CLIP:
        _over_with(_clipped, splat(alpha), splat(beta), source, destination, count)
    elif kind == codes.SIGMOID:
        _over(sigmoid, source, destination, count)
    elif kind == codes.SWISH and alpha == float32(1.0):
        _over(_silu, source, destination, count)
    elif kind == codes.SWISH:
        _over_with(_swish, splat(alpha), splat(beta), source, destination, count)
    elif kind == codes.HARD_SWISH:
        _over_with(_hard_swish, splat(alpha), splat(beta), source, destination, count)
    elif kind == codes.TANH:
        _over(hyperbolic_tangent, source, destination, count)
    elif kind == codes.GELU_ERF:
        _over(gaussian_error_linear_unit, source, destination, count)
    elif kind == codes.GELU_TANH:
        _over(_approximate_gelu, source, destination, count)
    elif kind == codes.EXP:
        _over(exponential, source, destination, count)
    elif kind == codes.ERF:
        _over(error_function, source, destination, count)
    elif kind == codes.SQRT:
        _over(square_root, source, destination, count)
    elif kind == codes.ABS:
        _over(magnitude, source, destination, count)
    elif kind == codes.ROUND:
        _over(nearest_whole, source, destination, count)
    elif kind == codes.IS_NAN:
        _over(_is_nan, source, destination, count)
    else:
        for i in range(0, count, LANES):
            x = apply_function(function, read(source + i * 4, 4, codes.FP32, count - i))
            write(destination + i * 4, 4, codes.FP32, x, count - i)
    return count


@inlined
def _is_nan(x: Any) -> Any:
    return _truth(codes.IS_NAN, x)


@inlined
def _rectified(x: Any) -> Any:
    return maximum(splat(float32(0.0)), x)


@inlined
def _silu(x: Any) -> Any:
    return x * sigmoid(x)


@inlined
def _clipped(x: Any, low: Any, high: Any) -> Any:
    return minimum(high, maximum(low, x))


@inlined
def _over_with(function: Any, alpha: Any, beta: Any, source: int, destination: int, count: int) -> None:
    whole = count // LANES * LANES
    for i in range(0, whole, LANES):
        store(destination + i * 4, function(load(source + i * 4), alpha, beta))
    if whole < count:
        x = function(read(source + whole * 4, 4, codes.FP32, count - whole), alpha, beta)
        write(destination + whole * 4, 4, codes.FP32, x, count - whole)


@inlined
def _over(function: Any, source: int, destination: int, count: int) -> None:
    whole = count // LANES * LANES
    for i in range(0, whole, LANES):
        store(destination + i * 4, function(load(source + i * 4)))
    if whole < count:
        x = function(read(source + whole * 4, 4, codes.FP32, count - whole))
        write(destination + whole * 4, 4, codes.FP32, x, count - whole)


@outlined
def combine_runs(operation: int, a: int, b: int, b_step: int, c: int, c_step: int, to: int, count: int) -> int:
    """`operation(a, b, c)` of so many FP32 values that lie together; returns how many.

    The result may be where a is. Steps are bytes from vector to vector: 0 where an operand is a vector of one value.
    """
    whole = count // LANES * LANES
    if operation == codes.SUM:
        _over_pairs(_sum, whole, a, b, b_step, to)
    elif operation == codes.PROD:
        _over_pairs(_product, whole, a, b, b_step, to)
    elif operation == codes.SUB:
        _over_pairs(_difference, whole, a, b, b_step, to)
    elif operation == codes.DIV:
        _over_pairs(_quotient, whole, a, b, b_step, to)
    elif operation == codes.MAX:
        _over_pairs(maximum_or_nan, whole, a, b, b_step, to)
    elif operation == codes.MIN:
        _over_pairs(minimum_or_nan, whole, a, b, b_step, to)
    elif operation == codes.SLOPE:
        _over_pairs(_sloped, whole, a, b, b_step, to)
    elif operation == codes.MULTIPLY_ADD:
        for i in range(0, whole, LANES):
            vector = i // LANES
            y = load(a + i * 4) * load(b + vector * b_step) + load(c + vector * c_step)
            store(to + i * 4, y)
    elif operation == codes.SELECT:
        zero = splat(float32(0.0))
        for i in range(0, whole, LANES):
            vector = i // LANES
            y = where_equal(load(a + i * 4), zero, load(c + vector * c_step), load(b + vector * b_step))
            store(to + i * 4, y)
    else:
        whole = 0
    for i in range(whole, count, LANES):
        vector = i // LANES
        x, y = read(a + i * 4, 4, codes.FP32, count - i), _part(b + vector * b_step, b_step, count - i)
        if operation == codes.MULTIPLY_ADD:
            x = x * y + _part(c + vector * c_step, c_step, count - i)
        elif operation == codes.SELECT:
            x = where_equal(x, splat(float32(0.0)), _part(c + vector * c_step, c_step, count - i), y)
        else:
            x = _combined(operation, x, y)
        write(to + i * 4, 4, codes.FP32, x, count - i)
    return count


@inlined
def _over_pairs(function: Any, count: int, a: int, b: int, b_step: int, to: int) -> None:
    for i in range(0, count, LANES):
        store(to + i * 4, function(load(a + i * 4), load(b)))
        b += b_step


@inlined
def _part(address: int, step: int, count: int) -> Any:
    """The first lanes of a vector, or one value in all."""
    return read(address, 4, codes.FP32, count if step == VECTOR_BYTES else LANES)


_sum, _product = inlined(lambda x, y: x + y), inlined(lambda x, y: x * y)
_difference, _quotient = inlined(lambda x, y: x - y), inlined(lambda x, y: x / y)


@inlined
def _sloped(x: Any, y: Any) -> Any:
    return where_negative(x, x * y, x)


@inlined
def _combined(operation: int, x: Any, y: Any) -> Any:
    """The operation of two operands."""
    if operation == codes.SUM:
        return x + y
    if operation == codes.PROD:
        return x * y
    if operation == codes.MAX:
        return maximum_or_nan(x, y)
    if operation == codes.MIN:
        return minimum_or_nan(x, y)
    if operation == codes.SUB:
        return x - y
    if operation == codes.DIV:
        return x / y
    if operation == codes.POW:
        return power(x, y)
    if operation >= codes.EQUAL:
        return _compared(operation, x, y)
    return _sloped(x, y)


@inlined
def _compared(operation: int, x: Any, y: Any) -> Any:
    """1 where the comparison holds, else 0; of a NaN only UNEQUAL does."""
    zero, one = splat(float32(0.0)), splat(float32(1.0))
    if operation == codes.EQUAL:
        return where_equal(x, y, one, zero)
    if operation == codes.UNEQUAL:
        return where_equal(x, y, zero, one)
    if operation == codes.GREATER:
        return where_less(y, x, one, zero)
    if operation == codes.LESS:
        return where_less(x, y, one, zero)
    is_equal = where_equal(x, y, one, zero)
    return where_less(y, x, one, is_equal) if operation == codes.GREATER_EQUAL else where_less(x, y, one, is_equal)
