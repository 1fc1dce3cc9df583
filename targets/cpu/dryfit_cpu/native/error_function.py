"""The error function, and its complement, as GELU needs it.

Errors are the largest found against FP64 over a dense grid.
"""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu.compiler.compilation import inlined
from dryfit_cpu.compiler.vector_functions import magnitude, where_less, with_sign_of
from dryfit_cpu.compiler.vectors import minimum, multiply_add, nearest, power_of_two, splat

_BORDER = float32(0.9375)
_END = float32(4.0)
"""From here on the error function is 1 in FP32."""
_ERF_0, _ERF_1, _ERF_2 = float32(0.12837917), float32(-0.37612632), float32(0.1128368)
_ERF_3, _ERF_4, _ERF_5 = float32(-0.026858497), float32(0.0051988293), float32(-0.000811807)
_ERF_6 = float32(8.267442e-05)
"""erf(x) / x - 1 as a polynomial in x**2: near minimax on [0, 0.9375], 5e-10 relative to erf."""
_LOG_0, _LOG_1, _LOG_2 = float32(0.00042448114), float32(-1.630435), float32(-0.9117769)
_LOG_3, _LOG_4, _LOG_5 = float32(-0.1585882), float32(0.037993982), float32(-0.0068243006)
_LOG_6, _LOG_7, _LOG_8 = float32(0.0008522114), float32(-6.5431675e-05), float32(2.3118496e-06)
"""The logarithm to base 2 of 1 - erf(t) as a polynomial: near minimax on [0.9375, 4], 1.8e-8."""
_EXP_1, _EXP_2, _EXP_3 = float32(0.6931472), float32(0.24022648), float32(0.05550362)
_EXP_4, _EXP_5, _EXP_6 = float32(0.009618527), float32(0.0013390196), float32(0.00015321106)
"""(2**r - 1) / r as a polynomial: near minimax of 2**r on |r| <= 1/2, 4e-9 relative."""


@inlined
def _near(x: Any) -> Any:
    """The error function below the border."""
    z = x * x
    p = multiply_add(splat(_ERF_6), z, splat(_ERF_5))
    p = multiply_add(p, z, splat(_ERF_4))
    p = multiply_add(p, z, splat(_ERF_3))
    p = multiply_add(p, z, splat(_ERF_2))
    p = multiply_add(p, z, splat(_ERF_1))
    p = multiply_add(p, z, splat(_ERF_0))
    return multiply_add(p, x, x)


@inlined
def _far(size: Any) -> Any:
    """1 - erf beyond the border, for sizes up to the end."""
    t = minimum(splat(_END), size)
    p = multiply_add(splat(_LOG_8), t, splat(_LOG_7))
    p = multiply_add(p, t, splat(_LOG_6))
    p = multiply_add(p, t, splat(_LOG_5))
    p = multiply_add(p, t, splat(_LOG_4))
    p = multiply_add(p, t, splat(_LOG_3))
    p = multiply_add(p, t, splat(_LOG_2))
    p = multiply_add(p, t, splat(_LOG_1))
    return _power_of_two(multiply_add(p, t, splat(_LOG_0)))


@inlined
def _power_of_two(x: Any) -> Any:
    """2 to the power of x, for x from -126 to 0."""
    one, n = splat(float32(1.0)), nearest(x)
    r = x - n
    p = multiply_add(splat(_EXP_6), r, splat(_EXP_5))
    p = multiply_add(p, r, splat(_EXP_4))
    p = multiply_add(p, r, splat(_EXP_3))
    p = multiply_add(p, r, splat(_EXP_2))
    p = multiply_add(p, r, splat(_EXP_1))
    return multiply_add(p, r, one) * power_of_two(n)


@inlined
def error_function(x: Any) -> Any:
    """erf(x), within 2 units in the last place."""
    size = magnitude(x)
    beyond = with_sign_of(splat(float32(1.0)) - _far(size), x)
    return where_less(size, splat(_BORDER), _near(x), beyond)


@inlined
def gaussian_error_linear_unit(x: Any) -> Any:
    """GELU: x times the normal distribution up to x; 0 below -5.66.

    Within 2 units in the last place above 0; below within 5e-8 (6e-8 without fused multiply-add) and, above -5, 5e-6 of
    the value.
    The distribution is half of 1 - erf(|x| / sqrt(2)) on the negative side: nothing cancels there.
    """
    one, half = splat(float32(1.0)), splat(float32(0.5))
    t = x * splat(float32(0.7071067811865476))
    size = magnitude(t)
    below = where_less(size, splat(_BORDER), one - _near(size), _far(size)) * half
    below = where_less(splat(_END), size, splat(float32(0.0)), below)
    return x * where_less(x, splat(float32(0.0)), below, one - below)
