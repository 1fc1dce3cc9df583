"""Softmax of codes, by hand and against real numbers."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.quantization.methods.operator_calls import call_of_layer, operand, random_codes

from dryfit.network.data_types import DataType
from dryfit.network.layers.normalization import Softmax
from dryfit.quantization.methods.definitions import softmaxes
from dryfit.quantization.methods.method import MethodRule
from dryfit.quantization.methods.requantization import Encoding, Requantization, ScaleRule, Steps
from dryfit.quantization.rounding import RoundingMode

DEFINITIONS = [
    softmaxes.softmax_in_fixed_point,
    softmaxes.softmax_by_table,
    softmaxes.softmax_by_large_table,
    softmaxes.softmax_of_integers,
]


def rule(definition):
    """A rule of softmax."""
    record = Requantization(
        scale_rule=ScaleRule.FLOAT,
        encoding=Encoding.FLOAT32,
        steps=Steps.REAL,
        rounding=RoundingMode.HALF_TO_EVEN,
    )
    return MethodRule(
        operator="softmax", definition=definition, requantization=record, formula="", fidelity="inferred", source=""
    )


def result(definition, values, scale=0.1, axis=-1, to_type=DataType.UINT8):
    """Codes of scale 1/256 from the lowest."""
    axes = 1 << (axis % values.ndim)
    low = 0 if to_type is DataType.UINT8 else -128
    call = call_of_layer(Softmax(axes=axes), operand(values, scale, 7), scale=1 / 256, zero_point=low, to_type=to_type)
    return definition(call, rule(definition))


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_equal_elements_share_evenly(definition):
    assert result(definition, np.full((3, 4), 9, np.uint8)).tolist() == [[64] * 4] * 3


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_one_element_far_above_all_others_takes_everything(definition):
    assert result(definition, np.uint8([[0, 255, 0]]), scale=1.0).tolist() == [[0, 255, 0]]


@pytest.mark.parametrize("definition", DEFINITIONS)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("scale", [0.011, 0.25])
def test_codes_are_next_to_the_real_softmax(definition, axis, scale):
    values = random_codes((5, 6, 7), np.uint8)
    powers = np.exp((values - values.max(axis=axis, keepdims=True).astype(float)) * float(np.float32(scale)))
    exact = np.minimum(powers / powers.sum(axis=axis, keepdims=True) * 256, 255)
    assert np.abs(result(definition, values, scale, axis) - exact).max() < 0.51


@pytest.mark.parametrize("definition", DEFINITIONS[:3])
def test_signed_codes_are_the_unsigned_ones_moved(definition):
    values = random_codes((40, 10), np.uint8)
    signed = (values.astype(int) - 128).astype(np.int8)
    found = result(definition, signed, to_type=DataType.INT8)
    np.testing.assert_array_equal(found.astype(int) + 128, result(definition, values))


def test_a_sum_past_512_is_the_lowest_code():
    found = result(softmaxes.softmax_in_fixed_point, np.full((1, 1000), 3, np.uint8))
    assert not found.any()


def test_the_methods_are_a_code_apart_at_most():
    values = random_codes((3000, 10), np.uint8)
    first, *others = (result(definition, values, 0.05) for definition in DEFINITIONS)
    assert all(np.abs(first.astype(int) - other).max() <= 1 for other in others)


def test_a_reciprocal_without_its_fraction_is_seen():
    """1 / 0.35 is 2.86: three codes of a whole, or two where the fraction is cut off."""
    call = call_of_layer(Softmax(axes=1), operand(np.int8([100, -100])), scale=0.35)
    found = [one(call, rule(one)).tolist() for one in (softmaxes.softmax_by_table, softmaxes.softmax_by_large_table)]
    assert found == [[3, 0], [2, 0]]
