"""Average pooling and means, computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.quantization.methods.operator_calls import call_of_layer, operand, random_codes

from dryfit.network.layers.reduction import Reduce, ReduceOperation
from dryfit.network.layers.window_layer import Pooling, PoolingType
from dryfit.quantization.methods.definitions import averages
from dryfit.quantization.methods.method import MethodRule
from dryfit.quantization.methods.requantization import Encoding, Requantization, ScaleRule, Steps
from dryfit.quantization.rounding import RoundingMode, round_values

AWAY, UP, EVEN = RoundingMode.HALF_AWAY_FROM_ZERO, RoundingMode.HALF_UP, RoundingMode.HALF_TO_EVEN
MEAN = Reduce(op=ReduceOperation.AVG, axes=0b1100, keep_dims=True)


def rule(definition, rounding, steps=Steps.REAL, encoding=Encoding.FLOAT32, *, zero_point_first=False, **options):
    """A rule of an average."""
    record = Requantization(
        scale_rule=ScaleRule.DOUBLE,
        encoding=encoding,
        steps=steps,
        rounding=rounding,
        zero_point_first=zero_point_first,
    )
    return MethodRule(
        operator="average_pool",
        definition=definition,
        requantization=record,
        options=options,
        formula="",
        fidelity="inferred",
        source="",
    )


CODES = rule(averages.average_of_codes, AWAY)
VALUES = rule(averages.average_of_real_values, EVEN, zero_point_first=True)
SUMS = rule(averages.average_of_sums, AWAY, Steps.ONE_STEP, Encoding.Q24)
FLOAT_SUMS = rule(averages.average_of_sums, EVEN)
SCALED = rule(averages.mean_of_scaled_codes, EVEN, zero_point_first=True)
DIVIDED = rule(averages.mean_by_divided_multiplier, AWAY, Steps.TWO_STEP, Encoding.Q31)
OF_CODES = rule(averages.mean_of_codes, AWAY, Steps.TWO_STEP, Encoding.Q31)


def pooling(window, **parameters):
    """An average pooling."""
    return Pooling(pooling_type=PoolingType.AVERAGE, window_size_nd=window, **parameters)


def image(*rows):
    """INT8 codes [1, 1, H, W]."""
    return np.int8([[rows]])


@pytest.mark.parametrize(("one", "expected"), [(CODES, [2, -2]), (VALUES, [2, -2]), (SUMS, [2, -2])])
def test_three_halves_are_two(one, expected):
    for codes, code in zip(([1, 2], [-1, -2]), expected, strict=True):
        call = call_of_layer(pooling((1, 2)), operand(image(codes)))
        assert one.definition(call, one).item() == code


def test_halves_go_where_the_record_says():
    call = call_of_layer(pooling((1, 2)), operand(image([0, 1])))
    assert [one.definition(call, one).item() for one in (CODES, VALUES, SUMS)] == [1, 0, 1]


def test_cells_outside_the_input_are_left_out_or_count_as_zero_points():
    padded = pooling((1, 3), pre_padding=(0, 1), post_padding=(0, 1))
    call = call_of_layer(padded, operand(image([30, 60]), 1.0, 0), zero_point=0)
    assert CODES.definition(call, CODES).ravel().tolist() == [45, 45]
    assert VALUES.definition(call, VALUES).ravel().tolist() == [45, 45]
    assert SUMS.definition(call, SUMS).ravel().tolist() == [30, 30]
    counted = call_of_layer(
        pooling((1, 3), pre_padding=(0, 1), post_padding=(0, 1), average_count_excludes_padding=False),
        operand(image([30, 60])),
    )
    assert VALUES.definition(counted, VALUES).ravel().tolist() == [30, 30]


def test_a_zero_point_stands_for_zero_outside_the_input():
    padded = pooling((1, 2), pre_padding=(0, 1))
    call = call_of_layer(padded, operand(image([50]), 1.0, 10), zero_point=10)
    assert SUMS.definition(call, SUMS).ravel().tolist() == [30]


@pytest.mark.parametrize("one", [DIVIDED, OF_CODES, SUMS, FLOAT_SUMS, SCALED], ids=lambda one: one.definition.__name__)
def test_means_are_the_nearest_codes(one):
    codes = random_codes((2, 24, 5, 7))
    call = call_of_layer(MEAN, operand(codes, 0.04, -3), scale=0.0171, zero_point=5)
    exact = (codes + 3.0).mean(axis=(2, 3), keepdims=True) * float(np.float32(0.04)) / float(np.float32(0.0171)) + 5
    found = one.definition(call, one)
    assert found.shape == (2, 24, 1, 1)
    # Two steps round twice; zero points that are scaled apart from the codes are rounded apart, too.
    allowed = 1.04 if one is OF_CODES else 0.54 if one is DIVIDED else 0.501
    assert np.abs(found - np.clip(exact, -128, 127)).max() < allowed


def test_a_mean_without_kept_axes_is_a_matrix():
    flat = Reduce(op=ReduceOperation.AVG, axes=0b1100, keep_dims=False)
    codes = random_codes((2, 3, 4, 4))
    for one in (DIVIDED, OF_CODES, FLOAT_SUMS, SCALED):
        found = one.definition(call_of_layer(flat, operand(codes)), one)
        kept = one.definition(call_of_layer(MEAN, operand(codes)), one)
        np.testing.assert_array_equal(found, kept[:, :, 0, 0])


def test_halves_of_means_part_the_methods():
    """Even, with the zero point before or after; away from zero."""
    call = call_of_layer(MEAN, operand(image([0, 1])), zero_point=1)
    found = [one.definition(call, one).item() for one in (FLOAT_SUMS, SCALED, SUMS, DIVIDED)]
    assert found == [1, 2, 2, 2]


def test_windows_agree_with_rational_averages_and_a_wrong_rounding_does_not():
    codes = random_codes((1, 4, 9, 9))
    call = call_of_layer(pooling((2, 2)), operand(codes))
    exact = sum(codes[:, :, y : y + 8, x : x + 8].astype(int) for y in (0, 1) for x in (0, 1)) / 4
    np.testing.assert_array_equal(CODES.definition(call, CODES), round_values(exact, AWAY))
    assert np.mean(CODES.definition(call, CODES) != round_values(exact, UP)) > 0.05
