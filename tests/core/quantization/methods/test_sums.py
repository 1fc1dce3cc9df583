"""Sums of quantized tensors: where halves go, broadcasting, and activations, computed by hand."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from tests.core.quantization.methods.operator_calls import call_of_layer, operand, random_codes

from dryfit.network.data_types import DataType
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation
from dryfit.quantization.methods.definitions.real_numbers import in_real_numbers
from dryfit.quantization.methods.definitions.sums import (
    CUT_OPERANDS,
    SHIFT_BITS,
    sum_by_common_shift,
    sum_by_fused_products,
    sum_by_three_multipliers,
)
from dryfit.quantization.methods.definitions.weighted import VECTOR_ELEMENTS
from dryfit.quantization.methods.method import MethodRule
from dryfit.quantization.methods.requantization import Encoding, Requantization, ScaleRule, Steps
from dryfit.quantization.rounding import RoundingMode, round_values

AWAY, UP, EVEN = RoundingMode.HALF_AWAY_FROM_ZERO, RoundingMode.HALF_UP, RoundingMode.HALF_TO_EVEN
SUM = Elementwise(op=ElementWiseOperation.SUM)


def rule(definition, rounding, *, zero_point_first=False, **options):
    """A rule of a sum."""
    is_real = definition in (sum_by_fused_products, in_real_numbers)
    record = Requantization(
        scale_rule=ScaleRule.FLOAT,
        encoding=Encoding.FLOAT32 if is_real else Encoding.Q31,
        steps=Steps.REAL if is_real else Steps.TWO_STEP,
        rounding=rounding,
        zero_point_first=zero_point_first,
    )
    return MethodRule(
        operator="eltwise_sum",
        definition=definition,
        requantization=record,
        options=options,
        formula="",
        fidelity="inferred",
        source="",
    )


RULES = [
    rule(sum_by_three_multipliers, AWAY),
    rule(sum_by_common_shift, AWAY, **{SHIFT_BITS: 21}),
    rule(sum_by_common_shift, UP, **{SHIFT_BITS: 20}),
    rule(sum_by_fused_products, EVEN, zero_point_first=True),
    rule(in_real_numbers, EVEN),
]


@pytest.mark.parametrize("one", RULES, ids=lambda one: one.definition.__name__)
def test_sums_of_one_grid_are_exact(one):
    a, b = random_codes((2, 3, 4, 5), seed=1), random_codes((2, 3, 4, 5), seed=2)
    found = one.definition(call_of_layer(SUM, operand(a, 0.5), operand(b, 0.5), scale=0.5), one)
    np.testing.assert_array_equal(found, np.clip(a.astype(int) + b, -128, 127))
    assert found.dtype == np.int8


@pytest.mark.parametrize(("one", "halves"), list(zip(RULES, [(1, -1), (1, -1), (1, 0), (0, 0), (0, 0)], strict=True)))
def test_halves_go_where_the_record_says(one, halves):
    """1/2 and -1/2 in units of the output."""
    a, b = np.array([1, -1], np.int8), np.zeros(2, np.int8)
    found = one.definition(call_of_layer(SUM, operand(a, 0.5), operand(b, 0.5), scale=1.0), one)
    assert tuple(found) == halves


def test_a_zero_point_before_the_rounding_moves_ties():
    """1/2 is rounded to 0 and moved to 1, or moved to 3/2 and rounded to 2."""
    call = call_of_layer(SUM, operand(np.int8([1]), 0.5), operand(np.int8([0]), 0.5), scale=1.0, zero_point=1)
    assert sum_by_fused_products(call, rule(sum_by_fused_products, EVEN, zero_point_first=True)) == [2]
    assert in_real_numbers(call, rule(in_real_numbers, EVEN)) == [1]


@pytest.mark.parametrize("one", RULES, ids=lambda one: one.definition.__name__)
def test_sums_lie_next_to_the_exact_ones(one):
    """No definition is a whole code away from the rational sum, rounded anyhow."""
    a, b = random_codes((500,), np.uint8, seed=3), random_codes((500,), np.uint8, seed=4)
    grids = [(np.float32(0.0371), 120), (np.float32(0.0113), 7), (np.float32(0.0529), 99)]
    call = call_of_layer(
        SUM, operand(a, *grids[0]), operand(b, *grids[1]), scale=grids[2][0], zero_point=99, to_type=DataType.UINT8
    )
    exact = [
        (Fraction(float(grids[0][0])) * (int(x) - 120) + Fraction(float(grids[1][0])) * (int(y) - 7))
        / Fraction(float(grids[2][0]))
        + 99
        for x, y in zip(a, b, strict=True)
    ]
    exact = np.clip([float(one) for one in exact], 0, 255)
    assert np.abs(one.definition(call, one) - exact).max() < 0.501


@pytest.mark.parametrize("one", RULES, ids=lambda one: one.definition.__name__)
def test_what_differs_by_channel_is_repeated_on_either_side(one):
    a, b = random_codes((2, 3, 4, 5)), random_codes((1, 3, 1, 1), seed=5)
    first, second = operand(a, 0.031, 4), operand(b, 0.0177, -9)
    straight = one.definition(call_of_layer(SUM, first, second, scale=0.04), one)
    written_out = operand(np.broadcast_to(b, a.shape).copy(), 0.0177, -9)
    np.testing.assert_array_equal(straight, one.definition(call_of_layer(SUM, first, written_out, scale=0.04), one))
    np.testing.assert_array_equal(straight, one.definition(call_of_layer(SUM, second, first, scale=0.04), one))


@pytest.mark.parametrize("one", RULES, ids=lambda one: one.definition.__name__)
def test_a_fused_relu6_ends_at_the_codes_of_0_and_6(one):
    a = random_codes((256,))
    call = call_of_layer(SUM, operand(a), operand(a), scale=0.5, zero_point=3, limits=(0.0, 6.0))
    found = one.definition(call, one)
    assert (found.min(), found.max()) == (3, 15)


def test_vectors_that_cut_their_operands_differ_from_what_they_leave_over():
    """370 thousand and 0.8 of the first step decide a tie of the last one: cut, 1/2 becomes less."""
    call = call_of_layer(
        SUM,
        operand(np.full(9, 223, np.uint8), np.float32(0.125), 221),
        operand(np.full(9, 41, np.uint8), np.float32(0.3524684011936188), 41),
        scale=0.5,
        to_type=DataType.UINT8,
    )
    whole = sum_by_three_multipliers(call, rule(sum_by_three_multipliers, AWAY))
    cut = sum_by_three_multipliers(
        call, rule(sum_by_three_multipliers, AWAY, **{CUT_OPERANDS: True, VECTOR_ELEMENTS: 8})
    )
    assert whole.tolist() == [1] * 9
    assert cut.tolist() == [0] * 8 + [1]


def test_a_wrong_rounding_is_seen_in_sums_with_ties():
    a = random_codes((4000,))
    call = call_of_layer(SUM, operand(a, 0.25), operand(a[::-1].copy(), 0.5), scale=1.0)
    exact = round_values(a * 0.25 + a[::-1] * 0.5, AWAY).clip(-128, 127)
    right, wrong = (rule(sum_by_common_shift, mode, **{SHIFT_BITS: 21}) for mode in (AWAY, UP))
    np.testing.assert_array_equal(sum_by_common_shift(call, right), exact)
    assert np.mean(sum_by_common_shift(call, wrong) != exact) > 0.05
