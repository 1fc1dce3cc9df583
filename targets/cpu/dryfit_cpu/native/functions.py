"""Functions of vectors: the exponential and what is made of it, and the activations."""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu.codes import CLIP, LEAKY_RELU, NONE, RELU, SIGMOID, TANH
from dryfit_cpu.compiler.compilation import inlined
from dryfit_cpu.compiler.vectors import maximum, minimum, multiply_add, power_of_two, splat, where_negative

_LOG2_E = float32(1.4426950408889634)
_LN_2_HIGH, _LN_2_LOW = float32(0.693359375), float32(-2.12194440054690583e-4)
_ROUND = float32(12582912.0)
"""1.5 * 2**23: adding and subtracting it rounds to a whole number, for values far below it."""
_TANH_1, _TANH_2, _TANH_3 = float32(-0.3333328068), float32(0.1333138198), float32(-0.0537353195)
_TANH_4, _TANH_5 = float32(0.0206262916), float32(-0.0056919856)
"""(tanh(x) - x) / x**3 as a polynomial in x**2: least squares of the relative error on [0, 0.625], 5e-9 there."""


@inlined
def exponential(x: Any) -> Any:
    """E to the power of x, within 2 units in the last place; 0 below -87.3, infinity above 88.7, NaN for NaN.

    2**n * e**r with whole n and |r| <= ln(2) / 2, and the Taylor polynomial of e**r. The power of two is applied in two
    halves, so that results up to the largest finite number come out right.
    """
    bounded = minimum(splat(float32(89.0)), maximum(splat(float32(-88.0)), x))
    n = (bounded * splat(_LOG2_E) + splat(_ROUND)) - splat(_ROUND)
    r = bounded - n * splat(_LN_2_HIGH) - n * splat(_LN_2_LOW)
    p = splat(float32(1 / 5040))
    p = multiply_add(p, r, splat(float32(1 / 720)))
    p = multiply_add(p, r, splat(float32(1 / 120)))
    p = multiply_add(p, r, splat(float32(1 / 24)))
    p = multiply_add(p, r, splat(float32(1 / 6)))
    p = multiply_add(p, r, splat(float32(0.5)))
    p = multiply_add(p * r, r, r) + splat(float32(1.0))
    half = ((n * splat(float32(0.5))) + splat(_ROUND)) - splat(_ROUND)
    scaled = p * power_of_two(half) * power_of_two(n - half)
    return where_negative(x - splat(float32(-87.3)), splat(float32(0.0)), scaled)


@inlined
def sigmoid(x: Any) -> Any:
    """1 / (1 + e**-x)."""
    one = splat(float32(1.0))
    return one / (one + exponential(splat(float32(0.0)) - x))


@inlined
def hyperbolic_tangent(x: Any) -> Any:
    """tanh: an odd polynomial below 0.625, where 1 - 2 / (e**2x + 1) would cancel; that beyond."""
    one, zero = splat(float32(1.0)), splat(float32(0.0))
    magnitude = maximum(zero - x, x)
    large = one - splat(float32(2.0)) / (exponential(magnitude + magnitude) + one)
    z = x * x
    p = multiply_add(splat(_TANH_5), z, splat(_TANH_4))
    p = multiply_add(p, z, splat(_TANH_3))
    p = multiply_add(p, z, splat(_TANH_2))
    p = multiply_add(p, z, splat(_TANH_1))
    small = multiply_add(p * z, x, x)
    signed = where_negative(x, zero - large, large)
    return where_negative(magnitude - splat(float32(0.625)), small, signed)


@inlined
def activate(kind: int, x: Any, alpha: float, beta: float) -> Any:
    """One of the activations, as `dryfit.reference.activation` defines them."""
    if kind == NONE:
        return x
    if kind == RELU:
        return maximum(splat(float32(0.0)), x)
    if kind == CLIP:
        return minimum(splat(beta), maximum(splat(alpha), x))
    if kind == LEAKY_RELU:
        return where_negative(x, splat(alpha) * x, x)
    if kind == SIGMOID:
        return sigmoid(x)
    if kind == TANH:
        return hyperbolic_tangent(x)
    scaled = splat(alpha) * x + splat(beta)
    return minimum(splat(float32(1.0)), maximum(splat(float32(0.0)), scaled))
