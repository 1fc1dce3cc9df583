"""The exponential and what is made of it.

Errors are the largest found against FP64, in units in the last place, over a dense grid of the stated range.
"""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu.compiler.compilation import inlined
from dryfit_cpu.compiler.exponents import scaled_exponential
from dryfit_cpu.compiler.vector_functions import magnitude, negative, with_sign_of
from dryfit_cpu.compiler.vectors import counted_power_of_two, maximum, minimum, multiply_add, nearest, splat

_LOG2_E = float32(1.4426950408889634)
_COUNTING = float32(1.5 * 2**23 + 127)
_LN_2_HIGH, _LN_2_LOW = float32(-0.693359375), float32(2.12194440054690583e-4)
_EXP_2, _EXP_3, _EXP_4 = float32(0.49999994), float32(0.16666521), float32(0.04166839)
_EXP_5, _EXP_6 = float32(0.0083687315), float32(0.001381457)
"""(e**r - 1 - r) / r**2 as a polynomial in r: near minimax of e**r on |r| <= ln(2) / 2, 4e-9 relative."""
_LOG_1, _LOG_2, _LOG_3 = float32(0.66666675), float32(0.39998877), float32(0.28616884)
_LOG_4, _LOG_5 = float32(0.21427651), float32(0.24300963)
"""(2 atanh(s) / s - 2) / s**2 as a polynomial in s**2: near minimax on [0, 1/3], 1.1e-10 relative to 2 atanh(s)."""


@inlined
def _parts(bounded: Any, n: Any) -> Any:
    """Of e**x, which is `2**n * e**r` for a whole n: r with |r| <= ln(2) / 2, and (e**r - 1 - r) / r**2."""
    r = multiply_add(n, splat(_LN_2_LOW), multiply_add(n, splat(_LN_2_HIGH), bounded))
    p = multiply_add(splat(_EXP_6), r, splat(_EXP_5))
    p = multiply_add(p, r, splat(_EXP_4))
    p = multiply_add(p, r, splat(_EXP_3))
    return r, multiply_add(p, r, splat(_EXP_2))


@inlined
def exponential(x: Any) -> Any:
    """E to the power of x, within 2 units in the last place; 0 below -87.3, infinity above 88.7, NaN for NaN."""
    one = splat(float32(1.0))
    # Below the range n is anything: there the result is replaced.
    bounded = minimum(splat(float32(89.0)), x)
    n = nearest(bounded * splat(_LOG2_E))
    r, p = _parts(bounded, n)
    return scaled_exponential(multiply_add(multiply_add(p, r, one), r, one), n, x)


@inlined
def exponential_minus_one(x: Any) -> Any:
    """e**x - 1 for x <= 0, within 2 units in the last place; -1 below -17, NaN for NaN."""
    bounded = maximum(splat(float32(-40.0)), x)
    # Added to a number as large as this, n is rounded to a whole one.
    counted = multiply_add(bounded, splat(_LOG2_E), splat(_COUNTING))
    r, p = _parts(bounded, counted - splat(_COUNTING))
    scale = counted_power_of_two(counted)
    return multiply_add(multiply_add(p * r, r, r), scale, scale - splat(float32(1.0)))


@inlined
def sigmoid(x: Any) -> Any:
    """1 / (1 + e**-x)."""
    one = splat(float32(1.0))
    return one / (one + exponential(negative(x)))


@inlined
def hyperbolic_tangent(x: Any) -> Any:
    """tanh: -u / (2 + u) with u = e**-2|x| - 1, in which nothing cancels."""
    size = magnitude(x)
    u = exponential_minus_one(size * splat(float32(-2.0)))
    return with_sign_of(u / (u + splat(float32(2.0))), x)


@inlined
def soft_maximum(x: Any) -> Any:
    """log(1 + e**x), within 3 units in the last place above -87.3, 0 below.

    The larger of x and 0, and log(1 + u) with u = e**-|x|: 2 atanh(s) with s = u / (2 + u).
    """
    u = exponential(negative(magnitude(x)))
    s = u / (u + splat(float32(2.0)))
    z = s * s
    p = multiply_add(splat(_LOG_5), z, splat(_LOG_4))
    p = multiply_add(p, z, splat(_LOG_3))
    p = multiply_add(p, z, splat(_LOG_2))
    p = multiply_add(p, z, splat(_LOG_1))
    return maximum(splat(float32(0.0)), x) + multiply_add(p * z, s, s + s)
