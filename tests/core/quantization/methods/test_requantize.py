"""Requantization against exact rational arithmetic, and its records one field at a time."""

from __future__ import annotations

import math
from fractions import Fraction

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.quantization.methods.test_fixed_point import rounded

from dryfit.quantization.methods.requantization import (
    Encoding,
    Requantization,
    ScaleRule,
    Steps,
    activation_range,
    codes_of_real,
    effective_multiplier,
    encoded,
    multipliers,
    requantize,
)
from dryfit.quantization.rounding import RoundingMode

SCALES = st.floats(2.0**-12, 2.0**3, width=32)
MODES = st.sampled_from(RoundingMode)
INT8 = (-128, 127)
REAL = Requantization(
    scale_rule=ScaleRule.FLOAT, encoding=Encoding.FLOAT32, steps=Steps.REAL, rounding=RoundingMode.HALF_TO_EVEN
)
TWO_STEP = attrs.evolve(REAL, encoding=Encoding.Q31, steps=Steps.TWO_STEP, rounding=RoundingMode.HALF_AWAY_FROM_ZERO)


def float32(value: Fraction) -> Fraction:
    """The nearest FP32 number, ties to even, of a number that is neither tiny nor huge."""
    if value == 0:
        return value
    exponent = math.frexp(float(abs(value)))[1] - 24
    for unit in (Fraction(2) ** (exponent - 1), Fraction(2) ** exponent, Fraction(2) ** (exponent + 1)):
        digits = rounded(value / unit, RoundingMode.HALF_TO_EVEN)
        if abs(digits) <= 2**24:
            return digits * unit
    raise AssertionError(value)


def float64_of(value: Fraction) -> float:
    return value.numerator / value.denominator  # Python rounds this quotient correctly


@given(SCALES, SCALES, SCALES)
def test_scales_meet_as_each_rule_says(sx, sw, sy):
    x, w, y = (Fraction(one) for one in (sx, sw, sy))
    by_rule = {rule: float(effective_multiplier(rule, sx, sw, sy)) for rule in ScaleRule}
    assert by_rule[ScaleRule.DOUBLE] == float64_of(x * w / y)
    assert by_rule[ScaleRule.FLOAT_PRODUCT] == float64_of(float32(x * w) / y)
    assert by_rule[ScaleRule.FLOAT] == float(float32(float32(x * w) / y))


def test_the_three_scale_rules_are_three():
    sx, sw, sy = np.float32(0.1), np.float32(0.3), np.float32(0.7)
    assert len({float(effective_multiplier(rule, sx, sw, sy)) for rule in ScaleRule}) == 3


@given(st.integers(-(2**31), 2**31 - 1), st.floats(2.0**-20, 2.0, width=32), MODES, st.integers(-128, 127))
def test_a_product_in_fp32_is_rounded_three_times(total, multiplier, mode, zero_point):
    record = attrs.evolve(REAL, rounding=mode)
    exact = rounded(float32(float32(Fraction(total)) * Fraction(multiplier)), mode) + zero_point
    found = requantize(record, np.array([total]), encoded(record, multiplier), zero_point, INT8)
    assert found.tolist() == [min(max(exact, -128), 127)]


@given(st.integers(-(2**31), 2**31 - 1), st.floats(2.0**-20, 2.0), MODES, st.integers(-128, 127))
def test_a_product_in_fp64_is_rounded_twice(total, multiplier, mode, zero_point):
    record = attrs.evolve(REAL, encoding=Encoding.FLOAT64, rounding=mode)
    exact = rounded(Fraction(float64_of(total * Fraction(multiplier))), mode) + zero_point
    found = requantize(record, np.array([total]), encoded(record, multiplier), zero_point, INT8)
    assert found.tolist() == [min(max(exact, -128), 127)]


@given(st.integers(-300, 300), MODES, st.integers(-128, 127))
def test_clamping_before_or_after_rounding_is_the_same(halves, mode, zero_point):
    values = np.array([halves / 2], np.float32)
    found = [
        codes_of_real(values, attrs.evolve(REAL, rounding=mode, clamp_first=first), zero_point, INT8).tolist()
        for first in (True, False)
    ]
    assert found[0] == found[1] == [min(max(rounded(Fraction(halves, 2), mode) + zero_point, -128), 127)]


@pytest.mark.parametrize(("first", "code"), [(False, 3), (True, 4)])
def test_a_zero_point_before_the_rounding_turns_ties_to_even(first, code):
    record = attrs.evolve(REAL, zero_point_first=first)
    assert codes_of_real(np.array([2.5], np.float32), record, 1, INT8).tolist() == [code]


def test_the_largest_number_below_a_half_stays_below_it():
    values = np.array([0.49999997, -0.49999997], np.float32)
    for mode in RoundingMode:
        assert codes_of_real(values, attrs.evolve(REAL, rounding=mode), 0, INT8).tolist() == [0, 0]


def test_what_is_beyond_the_range_saturates_and_nan_is_the_lowest():
    values = np.array([1e30, -1e30, np.inf, -np.inf, np.nan], np.float32)
    for first in (True, False):
        record = attrs.evolve(REAL, zero_point_first=first)
        assert codes_of_real(values, record, -7, (0, 255)).tolist() == [255, 0, 255, 0, 0]


def test_a_real_bias_is_added_after_the_product():
    found = requantize(REAL, np.array([3]), encoded(REAL, 0.5), 0, INT8, np.array([0.75], np.float32))
    assert found.tolist() == [2]  # 1.5 + 0.75


def test_a_multiplier_a_channel_broadcasts_to_the_sums():
    factors = multipliers(TWO_STEP, np.float32(1), np.array([[0.5], [0.25]], np.float32), np.float32(1))
    assert requantize(TWO_STEP, np.array([[3, -3], [2, -2]]), factors, 10, INT8).tolist() == [[12, 9], [11, 9]]


def test_two_steps_in_hand_computed_numbers():
    """3 / 2 is rounded half up to 2 and -3 / 2 to -1; then 2 / 4 away from zero to 1, and -2 / 4 to -1."""
    half, eighth = encoded(TWO_STEP, 0.5), encoded(TWO_STEP, 0.125)
    assert requantize(TWO_STEP, np.array([3, -3]), half, 0, INT8).tolist() == [2, -1]
    assert requantize(TWO_STEP, np.array([4, -4]), eighth, 0, INT8).tolist() == [1, -1]
    upwards = attrs.evolve(TWO_STEP, rounding=RoundingMode.HALF_UP)
    assert requantize(upwards, np.array([4, -4]), eighth, 0, INT8).tolist() == [1, 0]


def test_24_bits_are_those_of_an_fp32_number():
    record = attrs.evolve(TWO_STEP, encoding=Encoding.Q24)
    fixed = encoded(record, 1 / 3).fixed
    assert int(fixed.mantissa) % 2**7 == 0
    assert Fraction(int(fixed.mantissa), 2 ** (31 - int(fixed.shift))) == Fraction(float(np.float32(1 / 3)))


@pytest.mark.parametrize(
    ("limits", "zero_point", "first", "codes"),
    [
        ((-np.inf, np.inf), 0, False, (-128, 127)),
        ((0.0, np.inf), -5, False, (-5, 127)),
        ((0.0, 6.0), -5, False, (-5, 8)),  # 12.5, away from zero, less 5
        ((0.0, 6.0), -5, True, (-5, 8)),  # 7.5, to even
        ((0.0, 6.0), -4, False, (-4, 9)),
        ((0.0, 6.0), -4, True, (-4, 8)),  # 8.5, to even
        ((0.0, 1e9), 100, False, (100, 127)),
    ],
)
def test_limits_of_an_activation_are_codes(limits, zero_point, first, codes):
    mode = RoundingMode.HALF_TO_EVEN if first else RoundingMode.HALF_AWAY_FROM_ZERO
    found = activation_range(limits, np.float32(0.48), zero_point, INT8, mode, zero_point_first=first)
    assert found == codes
