"""The fused multiply-add against exact rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dryfit.quantization.methods.definitions.sums import fused_multiply_add


def nearest_float32(value: Fraction) -> np.float32:
    """The FP32 number nearest to a rational number, ties to the even one."""
    middle = np.float32(float(value))
    near = [np.nextafter(middle, np.float32(-np.inf)), middle, np.nextafter(middle, np.float32(np.inf))]
    return min(near, key=lambda one: (abs(Fraction(float(one)) - value), int(one.view(np.int32)) & 1))


def exact(a, b, c) -> np.float32:
    """a * b + c rounded once."""
    return nearest_float32(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)))


def rounded_twice(a, b, c):
    """The sum in FP64, then in FP32: not the same."""
    return (np.float64(a) * np.float64(b) + np.float64(c)).astype(np.float32)


def test_random_products_and_sums_are_rounded_once():
    draw = np.random.default_rng(0)
    a, b, c = (draw.standard_normal(2000).astype(np.float32) * 10.0 ** draw.integers(-6, 6, 2000) for _ in range(3))
    a, b, c = a.astype(np.float32), b.astype(np.float32), c.astype(np.float32)
    expected = [exact(*numbers) for numbers in zip(a, b, c, strict=True)]
    np.testing.assert_array_equal(fused_multiply_add(a, b, c), expected)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("last_bit", [0, 1])
def test_what_fp64_would_round_to_a_tie_is_seen(sign, side, last_bit):
    """The product lies half-way between two FP32 numbers, and the sum moves it by less than FP64 holds."""
    a, b = np.float32(sign * (2**12 + 1)), np.float32(2**12 + 1 + 2 * last_bit)
    c = np.float32(side * 2.0**-40)
    assert fused_multiply_add(a, b, c) == exact(a, b, c)


def test_rounding_twice_differs():
    a, b, c = np.float32(2**12 + 1), np.float32(2**12 + 1), np.float32(2.0**-40)
    assert rounded_twice(a, b, c) != exact(a, b, c)


def test_infinities_stay():
    values = fused_multiply_add(np.float32([np.inf, 1, 3e38]), np.float32([1, 1, 10]), np.float32([1, -np.inf, 0]))
    np.testing.assert_array_equal(values, np.float32([np.inf, -np.inf, np.inf]))
