"""Functions of one code, quantization and concatenation, computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.quantization.methods.operator_calls import call_of_layer, operand, random_codes

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import Activation, ActivationType
from dryfit.network.layers.movement import Concatenation
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.quantization.methods.definitions import activations, real_numbers, requantized
from dryfit.quantization.methods.method import MethodRule
from dryfit.quantization.methods.requantization import Encoding, Requantization, ScaleRule, Steps
from dryfit.quantization.rounding import RoundingMode

AWAY, UP, EVEN = RoundingMode.HALF_AWAY_FROM_ZERO, RoundingMode.HALF_UP, RoundingMode.HALF_TO_EVEN
RELU = Activation(activation_type=ActivationType.RELU)
RELU6 = Activation(activation_type=ActivationType.CLIP, alpha=0.0, beta=6.0)
LEAKY = Activation(activation_type=ActivationType.LEAKY_RELU, alpha=0.25)
SIGMOID = Activation(activation_type=ActivationType.SIGMOID)


def rule(definition, rounding=EVEN, steps=Steps.REAL, **options):
    """A rule of a function of codes."""
    record = Requantization(
        scale_rule=ScaleRule.FLOAT,
        encoding=Encoding.FLOAT32 if steps is Steps.REAL else Encoding.Q31,
        steps=steps,
        rounding=rounding,
    )
    return MethodRule(
        operator="relu",
        definition=definition,
        requantization=record,
        options=options,
        formula="",
        fidelity="inferred",
        source="",
    )


def result(one, layer, values, **output):
    """The codes of a rule for INT8 codes of scale 1."""
    return one.definition(call_of_layer(layer, operand(np.int8(values)), **output), one).tolist()


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (rule(activations.leaky_relu, AWAY, Steps.TWO_STEP), [-2, -1, 0, 0, 3]),
        (rule(activations.leaky_relu_by_shift, UP, Steps.TWO_STEP, fraction_bits=8), [-1, 0, 0, 0, 3]),
        (rule(activations.leaky_relu_by_ratio), [-2, 0, 0, 0, 3]),
        (rule(real_numbers.in_real_numbers), [-2, 0, 0, 0, 3]),
    ],
    ids=lambda one: one.definition.__name__ if isinstance(one, MethodRule) else "",
)
def test_leaky_relu_rounds_halves_of_negative_codes_as_the_record_says(one, expected):
    assert result(one, LEAKY, [-6, -2, -1, 0, 3]) == expected


@pytest.mark.parametrize(
    "one", [rule(activations.relu, AWAY, Steps.TWO_STEP), rule(real_numbers.in_real_numbers)], ids=["codes", "real"]
)
def test_relu_starts_at_the_zero_point_and_relu6_ends_at_6(one):
    assert result(one, RELU, [-5, 0, 4], scale=0.5, zero_point=-10) == [-10, -10, -2]
    assert result(one, RELU6, [-5, 4, 100], scale=0.5, zero_point=-10) == [-10, -2, 2]


def test_relu_of_codes_only_clamps():
    one = rule(activations.relu_of_codes)
    found = one.definition(call_of_layer(RELU, operand(np.int8([-5, 3, 7]), 0.3, 3), scale=0.3, zero_point=3), one)
    assert found.tolist() == [3, 3, 7]


@pytest.mark.parametrize(
    "definition", [activations.sigmoid, activations.sigmoid_in_double, activations.sigmoid_by_quotient]
)
def test_sigmoid_of_0_is_a_half_and_its_ends_are_the_ends_of_the_range(definition):
    one = rule(definition)
    assert result(one, SIGMOID, [-128, 0, 127], scale=1 / 256, zero_point=-128) == [-128, 0, 127]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_a_table_gives_each_element_its_own_entry_in_any_layout(dtype):
    codes = random_codes((3, 5, 7, 2), dtype).transpose(3, 1, 0, 2)
    to_type = DataType.from_numpy(np.dtype(dtype))
    one = rule(real_numbers.in_real_numbers)
    found = one.definition(call_of_layer(LEAKY, operand(codes, 1.0, 10), zero_point=10, to_type=to_type), one)
    distances = codes.astype(int) - 10
    expected = np.where(distances >= 0, distances, np.rint(distances * 0.25)) + 10
    np.testing.assert_array_equal(found, np.clip(expected, np.iinfo(dtype).min, np.iinfo(dtype).max))


@pytest.mark.parametrize(("rounding", "expected"), [(AWAY, [1, -1, 2]), (EVEN, [0, 0, 2]), (UP, [1, 0, 2])])
def test_halves_are_quantized_as_the_record_says(rounding, expected):
    one = rule(real_numbers.quantize, rounding)
    call = call_of_layer(Quantize(), operand(np.float32([0.5, -0.5, 1.5]), None), scale=1.0)
    assert one.definition(call, one).tolist() == expected


def test_infinities_and_large_numbers_saturate_and_nan_is_the_lowest_code():
    one = rule(real_numbers.quantize, AWAY)
    values = np.float32([np.inf, -np.inf, 1e30, -1e30, np.nan])
    call = call_of_layer(Quantize(), operand(values, None), scale=0.01, zero_point=120, to_type=DataType.UINT8)
    assert one.definition(call, one).tolist() == [255, 0, 255, 0, 0]


def test_a_product_with_the_reciprocal_is_not_the_quotient():
    scale = np.float32(0.0371)
    values = (np.arange(-100, 100, dtype=np.float32) + np.float32(0.5)) * scale
    call = call_of_layer(Quantize(), operand(values, None), scale=scale)
    by_quotient, by_product = (rule(real_numbers.quantize, times_reciprocal=times) for times in (False, True))
    assert np.any(by_quotient.definition(call, by_quotient) != by_product.definition(call, by_product))


def test_dequantizing_by_a_line_differs_in_the_last_bit_only():
    call = call_of_layer(Dequantize(), operand(random_codes((256,)), 0.0371, 55))
    exact, line = real_numbers.dequantize(call, rule(None)), real_numbers.dequantize_by_line(call, rule(None))
    assert np.any(exact != line)
    np.testing.assert_allclose(exact, line, atol=1e-6)


@pytest.mark.parametrize("one", [rule(requantized.concatenated_by_line, AWAY), rule(requantized.concatenated_by_value)])
def test_inputs_on_the_outputs_grid_are_copied_and_others_are_moved(one):
    same, other = operand(np.int8([[1, -7]]), 0.5, 2), operand(np.int8([[3, -1]]), 1.0, 1)
    found = one.definition(call_of_layer(Concatenation(axis=1), same, other, scale=0.5, zero_point=2), one)
    assert found.tolist() == [[1, -7, 6, -2]]


def test_a_plain_concatenation_reads_no_scale():
    one = rule(requantized.concatenated)
    found = one.definition(call_of_layer(Concatenation(), operand(np.int8([1]), 0.5), operand(np.int8([2]), 9.0)), one)
    assert found.tolist() == [1, 2]
