"""The exponential and what is made of it.

Errors are the largest found against FP64, in units in the last place, over a dense grid of the stated range.
"""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu.compiler.compilation import inlined
from dryfit_cpu.compiler.vector_functions import magnitude, negative, where_less, with_sign_of
from dryfit_cpu.compiler.vectors import maximum, minimum, multiply_add, power_of_two, splat, where_negative

_LOG2_E = float32(1.4426950408889634)
_LN_2_HIGH, _LN_2_LOW = float32(0.693359375), float32(-2.12194440054690583e-4)
_ROUND = float32(12582912.0)
"""1.5 * 2**23: adding and subtracting it rounds to a whole number, for values far below it."""
_TANH_1, _TANH_2, _TANH_3 = float32(-0.3333328068), float32(0.1333138198), float32(-0.0537353195)
_TANH_4, _TANH_5 = float32(0.0206262916), float32(-0.0056919856)
"""(tanh(x) - x) / x**3 as a polynomial in x**2: least squares of the relative error on [0, 0.625], 5e-9 there."""
_LOG_1, _LOG_2, _LOG_3 = float32(0.66666675), float32(0.39998877), float32(0.28616884)
_LOG_4, _LOG_5 = float32(0.21427651), float32(0.24300963)
"""(2 atanh(s) / s - 2) / s**2 as a polynomial in s**2: near minimax on [0, 1/3], 1.1e-10 relative to 2 atanh(s)."""


@inlined
def _parts(bounded: Any) -> Any:
    """The whole n and the e**r - 1 of which `2**n * e**r` is e to the power of x; |r| <= ln(2) / 2."""
    n = (bounded * splat(_LOG2_E) + splat(_ROUND)) - splat(_ROUND)
    r = bounded - n * splat(_LN_2_HIGH) - n * splat(_LN_2_LOW)
    p = splat(float32(1 / 5040))
    p = multiply_add(p, r, splat(float32(1 / 720)))
    p = multiply_add(p, r, splat(float32(1 / 120)))
    p = multiply_add(p, r, splat(float32(1 / 24)))
    p = multiply_add(p, r, splat(float32(1 / 6)))
    p = multiply_add(p, r, splat(float32(0.5)))
    return n, multiply_add(p * r, r, r)


@inlined
def exponential(x: Any) -> Any:
    """E to the power of x, within 2 units in the last place; 0 below -87.3, infinity above 88.7, NaN for NaN.

    2**n * e**r with whole n and |r| <= ln(2) / 2, and the Taylor polynomial of e**r. The power of two is applied in two
    halves, so that results up to the largest finite number come out right.
    """
    n, p = _parts(minimum(splat(float32(89.0)), maximum(splat(float32(-88.0)), x)))
    p = p + splat(float32(1.0))
    half = ((n * splat(float32(0.5))) + splat(_ROUND)) - splat(_ROUND)
    scaled = p * power_of_two(half) * power_of_two(n - half)
    return where_negative(x - splat(float32(-87.3)), splat(float32(0.0)), scaled)


@inlined
def exponential_minus_one(x: Any) -> Any:
    """e**x - 1 for x <= 0, within 2 units in the last place; -1 below -17, NaN for NaN."""
    n, p = _parts(maximum(splat(float32(-40.0)), x))
    scale = power_of_two(n)
    return multiply_add(p, scale, scale - splat(float32(1.0)))


@inlined
def sigmoid(x: Any) -> Any:
    """1 / (1 + e**-x)."""
    one = splat(float32(1.0))
    return one / (one + exponential(negative(x)))


@inlined
def hyperbolic_tangent(x: Any) -> Any:
    """tanh: an odd polynomial below 0.625, where 1 - 2 / (e**2x + 1) would cancel; that beyond."""
    one, size = splat(float32(1.0)), magnitude(x)
    large = one - splat(float32(2.0)) / (exponential(size + size) + one)
    z = x * x
    p = multiply_add(splat(_TANH_5), z, splat(_TANH_4))
    p = multiply_add(p, z, splat(_TANH_3))
    p = multiply_add(p, z, splat(_TANH_2))
    p = multiply_add(p, z, splat(_TANH_1))
    return where_less(size, splat(float32(0.625)), multiply_add(p * z, x, x), with_sign_of(large, x))


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
