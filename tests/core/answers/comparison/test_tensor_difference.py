"""Differences of tensors: powers, places and shares, by hand and by brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dryfit.answers.comparison.difference_sums import DifferenceSums
from dryfit.answers.comparison.tensor_difference import decibels


def test_a_difference_tells_its_parts_its_first_place_and_its_largest():
    sums = DifferenceSums()
    others = np.array([[3.0, 4.0], [0.0, 1.0]], np.float32)
    values = np.array([[3.0, 4.5], [0.0, 3.0]], np.float32)
    fed = np.array([[3.0, 4.0], [0.0, 2.0]], np.float32)
    sums.add("one", values, others, fed)
    found = sums.result()
    assert (found.elements, found.differing, found.not_finite) == (4, 2, 0)
    assert (found.signal, found.error, found.own, found.inherited) == (26.0, 4.25, 1.0, 1.25)
    assert found.first is not None
    assert found.largest is not None
    assert (found.first.index, found.first.value, found.first.other) == ((0, 1), 4.5, 4.0)
    assert (found.largest.index, found.largest.value, found.largest.other) == ((1, 1), 3.0, 1.0)
    assert found.sqnr_db == pytest.approx(10 * math.log10(26 / 4.25))
    assert found.own_sqnr_db == pytest.approx(10 * math.log10(26))


def test_samples_add_up_as_if_they_were_one():
    rng = np.random.default_rng(0)
    values, others, fed = rng.standard_normal((3, 5, 7))
    whole, parts = DifferenceSums(), DifferenceSums()
    whole.add("all", values, others, fed)
    for index in range(5):
        parts.add(str(index), values[index], others[index], fed[index])
    one, two = whole.result(), parts.result()
    for name in ("elements", "differing", "not_finite"):
        assert getattr(one, name) == getattr(two, name)
    for name in ("signal", "error", "own", "inherited"):
        assert getattr(one, name) == pytest.approx(getattr(two, name))
    assert two.largest is not None
    assert one.largest is not None
    assert (int(two.largest.sample), *two.largest.index) == one.largest.index
    assert two.error == pytest.approx(np.sum((values - others) ** 2))
    assert two.inherited == pytest.approx(np.sum((values - fed) ** 2))


def test_what_is_not_finite_is_counted_and_left_out_of_the_sums():
    sums = DifferenceSums()
    values = np.array([np.nan, np.inf, np.inf, 1.0, 2.0])
    others = np.array([np.nan, np.inf, 5.0, np.nan, 1.0])
    sums.add("one", values, others, values)
    found = sums.result()
    assert (found.differing, found.not_finite, found.not_finite_differing) == (3, 4, 2)
    assert (found.signal, found.error) == (1.0, 1.0)
    assert found.first is not None
    assert found.first.index == (2,)
    assert found.largest is not None
    assert found.largest.index == (2,)


def test_a_nan_that_a_layer_makes_is_its_own_and_one_that_it_is_given_is_inherited():
    own, inherited = DifferenceSums(), DifferenceSums()
    numbers, spoilt = np.ones(2), np.array([1.0, np.nan])
    own.add("one", spoilt, numbers, spoilt)
    inherited.add("one", spoilt, numbers, numbers)
    assert (own.result().own_not_finite, own.result().inherited_not_finite) == (1, 0)
    assert (inherited.result().own_not_finite, inherited.result().inherited_not_finite) == (0, 1)


def test_the_same_nan_and_the_same_infinity_on_both_sides_do_not_differ():
    sums = DifferenceSums()
    values = np.array([np.nan, np.inf, -np.inf, 1.0])
    sums.add("one", values, values.copy(), values.copy())
    found = sums.result()
    assert (found.not_finite, found.not_finite_differing, found.own_not_finite, found.differing) == (3, 0, 0, 0)


def test_differences_up_to_the_tolerance_are_none_and_still_noise():
    sums = DifferenceSums(tolerance=0.5)
    sums.add("one", np.array([1.5, 2.0]), np.array([1.0, 2.0]), None)
    found = sums.result()
    assert (found.differing, found.first, found.error) == (0, None, 0.25)
    assert found.own is None
    assert found.own_sqnr_db is None
    assert found.inherited_sqnr_db is None


def test_what_one_sample_does_not_tell_the_sum_does_not_tell():
    sums = DifferenceSums()
    sums.add("one", np.ones(2), np.zeros(2), np.ones(2))
    sums.add("two", np.ones(2), np.zeros(2), None)
    assert sums.result().own is None
    assert sums.result().inherited is None


def test_decibels_without_noise_or_without_signal():
    assert decibels(1.0, 0.0) == math.inf
    assert decibels(0.0, 0.0) == math.inf
    assert decibels(0.0, 1.0) == -math.inf
    assert decibels(100.0, 1.0) == pytest.approx(20.0)


def test_an_overflow_is_the_layers_own_where_its_inputs_are_finite_or_the_result_is_beyond_the_type():
    inf, nan = np.inf, np.nan
    others = np.array([1.0, 70000.0, 70000.0, 3.0, 5.0, inf, 65504.0])
    values = np.array([1.0, inf, 65504.0, nan, inf, inf, 65504.0])
    for is_fed_finite, count in ((True, 4), (False, 2)):
        sums = DifferenceSums(largest_finite=65504.0)
        sums.add("a", values, others, values, is_fed_finite=is_fed_finite)
        found = sums.result()
        assert (found.overflowed, found.overflowed_to) == (count, 70000.0)
    sums = DifferenceSums()
    sums.add("a", values, others, values)
    assert sums.result().overflowed == 0
