"""The exponential and what is made of it, and the error function, as GELU needs it.

Errors are the largest found against FP64, in units in the last place, over a dense grid of the stated range.
"""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu.compiler.compilation import inlined
from dryfit_cpu.compiler.vectors import (
    counted_power_of_two,
    magnitude,
    maximum,
    minimum,
    multiply_add,
    nearest,
    negative,
    power_of_two,
    splat,
    where_less,
    with_sign_of,
)
from dryfit_cpu.compiler.wide_numbers import HAS_TABLES, power_of_sixteenths, scaled_exponential

_LOG2_E = float32(1.4426950408889634)
_COUNTING = float32(1.5 * 2**23 + 127)
_LN_2_HIGH, _LN_2_LOW = float32(-0.693359375), float32(2.12194440054690583e-4)
_EXP_2, _EXP_3, _EXP_4 = float32(0.49999994), float32(0.16666521), float32(0.04166839)
_EXP_5, _EXP_6 = float32(0.0083687315), float32(0.001381457)
"""(e**r - 1 - r) / r**2 as a polynomial in r: near minimax of e**r on |r| <= ln(2) / 2, 4e-9 relative."""
_COUNTING_SIXTEENTHS = float32(1.5 * 2**19)
_SHORT_2, _SHORT_3 = float32(0.50000978), float32(0.16666862)
"""(e**r - 1 - r) / r**2 as a polynomial in r: near minimax of e**r on |r| <= ln(2) / 32, 5e-9 relative."""
_LOG_1, _LOG_2, _LOG_3 = float32(0.66666675), float32(0.39998877), float32(0.28616884)
_LOG_4, _LOG_5 = float32(0.21427651), float32(0.24300963)
"""(2 atanh(s) / s - 2) / s**2 as a polynomial in s**2: near minimax on [0, 1/3], 1.1e-10 relative to 2 atanh(s)."""


@inlined
def _parts(bounded: Any, n: Any) -> Any:
    """Of e**x, which is `2**n * e**r` for a whole n: r with |r| <= ln(2) / 2, and (e**r - 1 - r) / r**2."""
    # ln(2) in two parts, the first with so few digits that n times it is exact: so r has all its digits, although it is
    # the small difference of two large numbers.
    r = multiply_add(n, splat(_LN_2_LOW), multiply_add(n, splat(_LN_2_HIGH), bounded))
    p = multiply_add(splat(_EXP_6), r, splat(_EXP_5))
    p = multiply_add(p, r, splat(_EXP_4))
    p = multiply_add(p, r, splat(_EXP_3))
    return r, multiply_add(p, r, splat(_EXP_2))


@inlined
def exponential(x: Any) -> Any:
    """E to the power of x, within 2 units in the last place; 0 below -87.3, infinity above 88.7, NaN for NaN."""
    # Below the range everything is anything: there the result is replaced.
    bounded = minimum(splat(float32(89.0)), x)
    if HAS_TABLES:
        return _exponential_by_table(bounded)
    one, n = splat(float32(1.0)), nearest(bounded * splat(_LOG2_E))
    r, p = _parts(bounded, n)
    return scaled_exponential(multiply_add(multiply_add(p, r, one), r, one), n, x)


@inlined
def exponential_below_one(x: Any) -> Any:
    """E to the power of x <= 0, within 2 units in the last place; 0 below -87.3, NaN for NaN."""
    if HAS_TABLES:
        return _exponential_by_table(x)
    # 2**-127 is a shift too: one that gives 0.
    one, bounded = splat(float32(1.0)), maximum(splat(float32(-88.0)), x)
    counted = multiply_add(bounded, splat(_LOG2_E), splat(_COUNTING))
    r, p = _parts(bounded, counted - splat(_COUNTING))
    return multiply_add(multiply_add(p, r, one), r, one) * counted_power_of_two(counted)


@inlined
def _exponential_by_table(x: Any) -> Any:
    """E to the power of x <= 89.

    It is `2**n * e**r` for n in sixteenths, so that r is small, and its polynomial short: the fraction's power of two
    is in a register's table. A sixth less time than with a polynomial for whole n.
    """
    counted = multiply_add(x, splat(_LOG2_E), splat(_COUNTING_SIXTEENTHS))
    n = counted - splat(_COUNTING_SIXTEENTHS)
    r = multiply_add(n, splat(_LN_2_LOW), multiply_add(n, splat(_LN_2_HIGH), x))
    power = power_of_sixteenths(counted)
    p = multiply_add(multiply_add(splat(_SHORT_3), r, splat(_SHORT_2)), r, splat(float32(1.0)))
    return scaled_exponential(multiply_add(p, r * power, power), n, x)


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
    """1 / (1 + e**-x); 0 below -88.4, NaN for NaN."""
    one = splat(float32(1.0))
    # Within these limits a power of two is a shift, with no question about its range: infinity at the lower one, and
    # nothing beside 1 at the upper one.
    bounded = minimum(splat(float32(87.0)), maximum(splat(float32(-88.8)), x))
    counted = multiply_add(bounded, splat(-_LOG2_E), splat(_COUNTING))
    r, p = _parts(negative(bounded), counted - splat(_COUNTING))
    return one / multiply_add(multiply_add(multiply_add(p, r, one), r, one), counted_power_of_two(counted), one)


_TANH_END = float32(10.0)
"""Before this tanh is 1 in FP32."""
_MINUS_TWO_LOG2_E, _HALF_LN_2 = float32(-2.8853900817779268), float32(0.34657359)
_TANH_1, _TANH_2, _TANH_3 = float32(2.0), float32(1.3333261), float32(0.6666649)
_TANH_4, _TANH_5 = float32(0.26762173), float32(0.08912758)
"""((e**2h - 1) / h - 2) / h as a polynomial in h: near minimax of e**2h - 1 on |h| <= ln(2) / 4, 2.6e-8 relative."""


@inlined
def hyperbolic_tangent(x: Any) -> Any:
    """tanh: -u / (2 + u) with u = e**-2|x| - 1, in which nothing cancels."""
    two, size = splat(float32(2.0)), minimum(splat(_TANH_END), magnitude(x))
    # u is 2**n * e**2h - 1 for a whole n. Half of ln(2) in one number is enough: where n is not 0, e**-2|x| is the
    # smaller part of the result the larger n is.
    counted = multiply_add(size, splat(_MINUS_TWO_LOG2_E), splat(_COUNTING))
    h = multiply_add(splat(_COUNTING) - counted, splat(_HALF_LN_2), negative(size))
    p = multiply_add(splat(_TANH_5), h, splat(_TANH_4))
    p = multiply_add(p, h, splat(_TANH_3))
    p = multiply_add(p, h, splat(_TANH_2))
    p = multiply_add(p, h, splat(_TANH_1))
    scale = counted_power_of_two(counted)
    u = multiply_add(multiply_add(p, h, two), h * scale, scale - splat(float32(1.0)))
    return with_sign_of(u / (u + two), x)


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


_BORDER = float32(0.9375)
_END = float32(4.0)
"""From here on the error function is 1 in FP32."""
_ERF_0, _ERF_1, _ERF_2 = float32(0.12837917), float32(-0.37612632), float32(0.1128368)
_ERF_3, _ERF_4, _ERF_5 = float32(-0.026858497), float32(0.0051988293), float32(-0.000811807)
_ERF_6 = float32(8.267442e-05)
"""erf(x) / x - 1 as a polynomial in x**2: near minimax on [0, 0.9375], 5e-10 relative to erf."""
_ERFC_0, _ERFC_1, _ERFC_2 = float32(0.00042448114), float32(-1.630435), float32(-0.9117769)
_ERFC_3, _ERFC_4, _ERFC_5 = float32(-0.1585882), float32(0.037993982), float32(-0.0068243006)
_ERFC_6, _ERFC_7, _ERFC_8 = float32(0.0008522114), float32(-6.5431675e-05), float32(2.3118496e-06)
"""The logarithm to base 2 of 1 - erf(t) as a polynomial: near minimax on [0.9375, 4], 1.8e-8."""
_TWO_1, _TWO_2, _TWO_3 = float32(0.6931472), float32(0.24022648), float32(0.05550362)
_TWO_4, _TWO_5, _TWO_6 = float32(0.009618527), float32(0.0013390196), float32(0.00015321106)
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
    p = multiply_add(splat(_ERFC_8), t, splat(_ERFC_7))
    p = multiply_add(p, t, splat(_ERFC_6))
    p = multiply_add(p, t, splat(_ERFC_5))
    p = multiply_add(p, t, splat(_ERFC_4))
    p = multiply_add(p, t, splat(_ERFC_3))
    p = multiply_add(p, t, splat(_ERFC_2))
    p = multiply_add(p, t, splat(_ERFC_1))
    return _power_of_two(multiply_add(p, t, splat(_ERFC_0)))


@inlined
def _power_of_two(x: Any) -> Any:
    """2 to the power of x, for x from -126 to 0."""
    one, n = splat(float32(1.0)), nearest(x)
    r = x - n
    p = multiply_add(splat(_TWO_6), r, splat(_TWO_5))
    p = multiply_add(p, r, splat(_TWO_4))
    p = multiply_add(p, r, splat(_TWO_3))
    p = multiply_add(p, r, splat(_TWO_2))
    p = multiply_add(p, r, splat(_TWO_1))
    return multiply_add(p, r, one) * power_of_two(n)


@inlined
def error_function(x: Any) -> Any:
    """erf(x), within 2 units in the last place."""
    size = magnitude(x)
    beyond = with_sign_of(splat(float32(1.0)) - _far(size), x)
    return where_less(size, splat(_BORDER), _near(x), beyond)


_LAST = float32(5.656854)
"""Below minus this GELU is 0."""
_TAIL_0, _TAIL_1, _TAIL_2 = float32(-1.151104), float32(-0.4592258), float32(-0.052411754)
_TAIL_3, _TAIL_4, _TAIL_5 = float32(0.0068726717), float32(9.756926e-05), float32(-0.00035401026)
_TAIL_6, _TAIL_7, _TAIL_8 = float32(0.00011112902), float32(-2.109405e-05), float32(2.7009366e-06)
_TAIL_9, _TAIL_10, _TAIL_11 = float32(-2.2891349e-07), float32(1.1639871e-08), float32(-2.6912877e-10)
"""The logarithm to base 2 of 1 - erf(x / sqrt(2)), over x, as a polynomial: near minimax on [0, 5.66], 2.2e-9 for x."""


@inlined
def gaussian_error_linear_unit(x: Any) -> Any:
    """GELU: x times the normal distribution up to x; 0 below -5.66.

    Within 2 units in the last place above 0; below within 5e-8 (6e-8 without fused multiply-add) and, above -5, 5e-6 of
    the value.
    The distribution is half of 1 - erf(|x| / sqrt(2)) on the negative side: nothing cancels there. On the other side it
    is at least one half, so that the error function near 0, which is small there, is not needed.
    """
    one, size = splat(float32(1.0)), magnitude(x)
    t = minimum(splat(_LAST), size)
    # Even and odd powers by themselves: two short chains instead of a long one, whose steps would wait for each other.
    z = t * t
    odd = multiply_add(splat(_TAIL_11), z, splat(_TAIL_9))
    even = multiply_add(splat(_TAIL_10), z, splat(_TAIL_8))
    odd, even = multiply_add(odd, z, splat(_TAIL_7)), multiply_add(even, z, splat(_TAIL_6))
    odd, even = multiply_add(odd, z, splat(_TAIL_5)), multiply_add(even, z, splat(_TAIL_4))
    odd, even = multiply_add(odd, z, splat(_TAIL_3)), multiply_add(even, z, splat(_TAIL_2))
    odd, even = multiply_add(odd, z, splat(_TAIL_1)), multiply_add(even, z, splat(_TAIL_0))
    below = _power_of_two(multiply_add(odd, t, even) * t) * splat(float32(0.5))
    below = where_less(splat(_LAST), size, splat(float32(0.0)), below)
    return x * where_less(x, splat(float32(0.0)), below, one - below)
