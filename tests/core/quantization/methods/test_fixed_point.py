"""Fixed-point products against exact rational arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dryfit.errors import ConfigError
from dryfit.quantization.methods.requantization import (
    doubling_high_product,
    fixed_point,
    one_step,
    shifted_right,
    two_step,
    wrapped,
)
from dryfit.quantization.rounding import RoundingMode

HALF = Fraction(1, 2)
INT32 = st.integers(-(2**31), 2**31 - 1)
MULTIPLIERS = st.floats(2.0**-40, 2.0**8)
MODES = st.sampled_from(RoundingMode)


def rounded(value: Fraction, mode: RoundingMode) -> int:
    """The nearest whole number, exactly."""
    whole = math.floor(value)
    if value - whole != HALF:
        return math.floor(value + HALF)
    outwards = {
        RoundingMode.HALF_UP: True,
        RoundingMode.HALF_AWAY_FROM_ZERO: value > 0,
        RoundingMode.HALF_TO_EVEN: whole % 2 == 1,
    }[mode]
    return whole + outwards


def int32(value: int) -> int:
    """The low 32 bits of a number, with their sign."""
    return (value + 2**31) % 2**32 - 2**31


@given(MULTIPLIERS)
def test_a_mantissa_has_31_bits_and_is_the_nearest(multiplier):
    number = fixed_point(multiplier)
    mantissa, shift = int(number.mantissa), int(number.shift)
    if multiplier < 2.0**-32:
        assert (mantissa, shift) == (0, 0)
        return
    assert 2**30 <= mantissa < 2**31
    error = Fraction(multiplier) - Fraction(mantissa) * Fraction(2) ** (shift - 31)
    assert abs(error) <= Fraction(2) ** (shift - 31) / 2


@given(st.floats(2.0**-32, 2.0**8, width=32))
def test_numbers_of_fp32_are_held_exactly(multiplier):
    number = fixed_point(np.float32(multiplier))
    assert Fraction(int(number.mantissa)) * Fraction(2) ** (int(number.shift) - 31) == Fraction(multiplier)


@pytest.mark.parametrize(
    ("multiplier", "mantissa", "shift"),
    [
        (0.0, 0, 0),
        (0.5, 2**30, 0),
        (1.0, 2**30, 1),
        (2.0**-32, 2**30, -31),
        (2.0**-33, 0, 0),
        (1 - 2.0**-33, 2**30, 1),  # what is nearer to 1 than to any mantissa below it
        (0.5 + 2.0**-32, 2**30 + 1, 0),  # a tie, away from zero
    ],
)
def test_mantissas_at_their_limits(multiplier, mantissa, shift):
    number = fixed_point(multiplier)
    assert (int(number.mantissa), int(number.shift)) == (mantissa, shift)


@given(INT32, INT32)
def test_the_high_product_is_rounded_half_up_and_saturates_only_for_the_two_lowest(a, b):
    exact = rounded(Fraction(a * b, 2**31), RoundingMode.HALF_UP)
    assert int(doubling_high_product(a, b)) == min(exact, 2**31 - 1)
    assert int(doubling_high_product(-(2**31), -(2**31))) == 2**31 - 1


@given(st.integers(-(2**61), 2**61), st.integers(0, 62), MODES)
def test_shifting_right_rounds_the_quotient_in_every_mode(value, bits, mode):
    assert int(shifted_right(value, bits, mode)) == rounded(Fraction(value, 2**bits), mode)


@given(st.integers(-1000, 1000), st.integers(1, 6), MODES)
def test_shifting_right_rounds_every_tie_as_its_mode_says(whole, bits, mode):
    value = (2 * whole + 1) << (bits - 1)
    assert int(shifted_right(value, bits, mode)) == rounded(Fraction(value, 2**bits), mode)


@given(INT32, MULTIPLIERS, MODES)
def test_two_steps_are_two_roundings_of_exact_quotients(value, multiplier, mode):
    number = fixed_point(multiplier)
    mantissa, shift = int(number.mantissa), int(number.shift)
    high = rounded(Fraction(int32(value << max(shift, 0)) * mantissa, 2**31), RoundingMode.HALF_UP)
    assert int(two_step(value, number, mode)) == rounded(Fraction(high, 2 ** max(-shift, 0)), mode)


@given(INT32, MULTIPLIERS, MODES)
def test_one_step_is_one_rounding_of_the_exact_product(value, multiplier, mode):
    number = fixed_point(multiplier)
    exact = Fraction(value * int(number.mantissa)) * Fraction(2) ** (int(number.shift) - 31)
    assert int(one_step(value, number, mode)) == rounded(exact, mode)


@given(st.integers(-(2**20), 2**20), MULTIPLIERS)
def test_one_and_two_steps_differ_by_one_at_most(value, multiplier):
    assume(abs(value * multiplier) < 2**30)
    number, mode = fixed_point(multiplier), RoundingMode.HALF_UP
    assert abs(int(one_step(value, number, mode)) - int(two_step(value, number, mode))) <= 1


def test_two_roundings_are_not_one():
    """0.375 - 2**-32 of a unit is rounded up to 0.5 by the first, and to 1 by the second; in one step it is 0."""
    number = fixed_point(2.0**-31)
    value = 2**30 - 1
    assert int(one_step(value, number, RoundingMode.HALF_UP)) == 0
    assert int(two_step(value, number, RoundingMode.HALF_UP)) == 1


def test_a_shift_to_the_left_wraps_around_as_int32_does():
    assert int(two_step(2**30, fixed_point(4.0), RoundingMode.HALF_UP)) == int32(2**33) // 2
    assert wrapped(np.array([2**31, 2**32 + 5])).tolist() == [-(2**31), 5]


def test_one_step_refuses_a_multiplier_that_leaves_nothing_to_round():
    with pytest.raises(ConfigError, match=r"single rounding shift.*found 2\*\*31; allowed: below 2\*\*30"):
        one_step(1, fixed_point(2.0**30), RoundingMode.HALF_UP)


def test_everything_works_on_arrays():
    values, numbers = np.arange(-8, 8).reshape(2, 8), fixed_point(np.array([[0.25], [0.75]]))
    for step in (one_step, two_step):
        expected = [
            [int(step(v, fixed_point(m), RoundingMode.HALF_UP)) for v in row]
            for row, m in zip(values.tolist(), (0.25, 0.75), strict=True)
        ]
        assert step(values, numbers, RoundingMode.HALF_UP).tolist() == expected
