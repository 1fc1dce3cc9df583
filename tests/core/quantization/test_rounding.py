"""Rounding against exact rational and decimal arithmetic, which share no code with it."""

import decimal
import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dryfit.errors import ConfigError, UnknownNameError
from dryfit.quantization.rounding import RoundingMode, round_values

EVEN, AWAY, UP = RoundingMode.HALF_TO_EVEN, RoundingMode.HALF_AWAY_FROM_ZERO, RoundingMode.HALF_UP
TYPES = [np.float16, np.float32, np.float64]

DECIMAL_MODES = {EVEN: decimal.ROUND_HALF_EVEN, AWAY: decimal.ROUND_HALF_UP}
"""Python's names for them: its `ROUND_HALF_UP` goes away from zero. It has none for `HALF_UP`."""


def exactly_rounded(value, mode):
    """The whole number that an exact computation gives."""
    number = Fraction(float(value))
    low = math.floor(number)
    if number - low != Fraction(1, 2):
        return low if number - low < Fraction(1, 2) else low + 1
    return {EVEN: low + low % 2, AWAY: low + (number > 0), UP: low + 1}[mode]


def interesting(dtype):
    """Halves and their neighbours, small and large, zeros, the smallest and the largest number: of both signs."""
    limits = np.finfo(dtype)
    halves = [n + 0.5 for n in range(6)] + [2.0**k + 0.5 for k in range(3, limits.nmant + 1)]
    powers = [2.0**k for k in range(limits.nmant - 1, min(limits.nmant + 4, limits.maxexp))]
    centres = np.array([*halves, *powers, 0.0, 1.0, limits.max, limits.tiny, limits.smallest_subnormal], dtype)
    around = [centres, np.nextafter(centres, dtype(0)), np.nextafter(centres, limits.max)]
    positive = np.unique(np.concatenate(around))
    return np.concatenate([positive, -positive])


@pytest.mark.parametrize("mode", RoundingMode, ids=str)
@pytest.mark.parametrize("dtype", TYPES)
def test_halves_their_neighbours_and_huge_values_are_rounded_exactly(dtype, mode):
    values = interesting(dtype)
    found = round_values(values, mode)
    assert found.dtype == dtype
    assert [int(one) for one in found] == [exactly_rounded(value, mode) for value in values]
    np.testing.assert_array_equal(np.signbit(found), np.signbit(values))


@pytest.mark.parametrize("mode", RoundingMode, ids=str)
@given(value=st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**54), 2**54).map(lambda n: n / 2))
def test_any_double_is_rounded_exactly(mode, value):
    assert int(round_values(np.float64(value), mode)) == exactly_rounded(value, mode)


@pytest.mark.parametrize("mode", RoundingMode, ids=str)
@given(value=st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_any_single_is_rounded_exactly(mode, value):
    assert int(round_values(np.float32(value), mode)) == exactly_rounded(value, mode)


@pytest.mark.parametrize("mode", DECIMAL_MODES, ids=str)
@given(value=st.integers(-4001, 4001).map(lambda n: n / 16))
def test_pythons_decimals_round_the_same(mode, value):
    expected = decimal.Decimal(value).quantize(decimal.Decimal(1), DECIMAL_MODES[mode])
    assert round_values(np.float32(value), mode) == float(expected)


def test_the_modes_differ_on_halves_alone():
    halves = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5], np.float32)
    assert round_values(halves, EVEN).tolist() == [-2, -2, 0, 0, 2, 2]
    assert round_values(halves, AWAY).tolist() == [-3, -2, -1, 1, 2, 3]
    assert round_values(halves, UP).tolist() == [-2, -1, 0, 1, 2, 3]


@pytest.mark.parametrize("mode", RoundingMode, ids=str)
@pytest.mark.parametrize("dtype", TYPES)
def test_infinities_stay_and_nan_stays_nan(dtype, mode):
    found = round_values(np.array([np.inf, -np.inf, np.nan], dtype), mode)
    assert found[:2].tolist() == [math.inf, -math.inf]
    assert np.isnan(found[2])


@pytest.mark.parametrize("mode", RoundingMode, ids=str)
def test_any_shape_and_any_strides_are_taken_and_nothing_is_changed(mode):
    values = np.linspace(-3, 3, 48).reshape(4, 6, 2)
    views = [values[::2, ::-1, 0], values.T, np.float32(2.5), np.empty((0, 3), np.float32)]
    for view in views:
        before = np.array(view)
        assert round_values(view, mode).shape == before.shape
        np.testing.assert_array_equal(view, before)
        np.testing.assert_array_equal(round_values(view, mode), round_values(before, mode))


def test_integers_are_whole_and_what_is_no_number_is_refused():
    values = np.array([2**62 + 1, -7])
    found = round_values(values, UP)
    assert found.tolist() == values.tolist()
    assert found is not values
    with pytest.raises(ConfigError, match="Values to round must be real numbers") as error:
        round_values(np.array([1j]), UP)
    assert (str(error.value.found), error.value.allowed) == ("complex128", "floating point or integers")


def test_a_mode_is_found_by_its_name_in_any_case():
    assert [RoundingMode.parse(str(mode).upper()) for mode in RoundingMode] == list(RoundingMode)
    assert [str(mode) for mode in RoundingMode] == ["half_to_even", "half_away_from_zero", "half_up"]
    with pytest.raises(UnknownNameError, match="Unknown rounding mode: 'half_upp'") as error:
        RoundingMode.parse("half_upp")
    assert error.value.remedy == "Did you mean 'half_up'?"


def test_the_modes_can_be_named_without_numpy():
    code = "import sys, dryfit.quantization.rounding; print('numpy' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
