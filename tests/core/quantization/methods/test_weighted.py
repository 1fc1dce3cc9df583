"""Sums of products against sums written out, and what weighted operators make of them."""

from __future__ import annotations

import itertools

import attrs
import numpy as np
import pytest
from tests.core.quantization.methods.operator_calls import call_of_layer, operand, random_codes

from dryfit.network.data_types import DataType
from dryfit.network.layers.convolution import Convolution, Deconvolution, FullyConnected
from dryfit.network.layers.matrix import MatrixMultiply, MatrixOperation
from dryfit.network.layers.movement import Identity
from dryfit.quantization.methods.definitions.requantized import requantized, requantized_by_shift
from dryfit.quantization.methods.definitions.weighted import (
    TAIL_ROUNDING,
    VECTOR_CHANNELS,
    VECTOR_ELEMENTS,
    weighted,
    weighted_sums,
)
from dryfit.quantization.methods.method import MethodRule
from dryfit.quantization.methods.requantization import Encoding, Requantization, ScaleRule, Steps
from dryfit.quantization.rounding import RoundingMode

REAL = Requantization(
    scale_rule=ScaleRule.FLOAT, encoding=Encoding.FLOAT32, steps=Steps.REAL, rounding=RoundingMode.HALF_TO_EVEN
)


def rule(record=REAL, definition=weighted, **options):
    return MethodRule(
        operator="convolution",
        definition=definition,
        requantization=record,
        options=options,
        formula="f",
        fidelity="inferred",
        source="a test",
    )


def convolved(layer, x, weights):
    """The sums of a two-dimensional convolution of integers, element by element."""
    N, _, H, W = x.shape
    K, group, R, S = weights.shape
    (top, left), (step_y, step_x), (far_y, far_x) = layer.pre_padding, layer.stride_nd, layer.dilation_nd
    extents = layer.output_extents((H, W))
    y = np.zeros((N, K, *extents), np.int64)
    for n, k, p, q, c, r, s in itertools.product(*map(range, (N, K, *extents, group, R, S))):
        row, column = p * step_y + r * far_y - top, q * step_x + s * far_x - left
        if 0 <= row < H and 0 <= column < W:
            y[n, k, p, q] += int(x[n, k // (K // layer.num_groups) * group + c, row, column]) * int(weights[k, c, r, s])
    return y


@pytest.mark.parametrize(
    ("channels", "K", "groups"), [(3, 4, 1), (4, 6, 2), (4, 8, 4), (5, 5, 5)], ids=["one", "two", "multiplied", "each"]
)
@pytest.mark.parametrize(("dtype", "zero_point"), [(np.int8, -128), (np.uint8, 255)])
def test_sums_of_a_convolution_are_those_of_distances_with_zeros_outside(channels, K, groups, dtype, zero_point):
    layer = Convolution(
        num_output_maps=K,
        kernel_size_nd=(2, 3),
        num_groups=groups,
        stride_nd=(1, 2),
        dilation_nd=(2, 1),
        pre_padding=(1, 0),
        post_padding=(0, 2),
    )
    x, weights = random_codes((2, channels, 4, 5), dtype), random_codes((K, channels // groups, 2, 3), dtype, 1)
    zeros = np.arange(K) - 2
    bias = np.arange(K, dtype=np.int32) * 1000
    call = call_of_layer(layer, operand(x, 0.5, zero_point), operand(weights, np.ones(K), zeros), operand(bias, None))
    expected = convolved(layer, x.astype(int) - zero_point, weights.astype(int) - zeros.reshape(-1, 1, 1, 1))
    found = weighted_sums(call)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, expected + bias.reshape(1, -1, 1, 1))


@pytest.mark.parametrize("axes", [1, 3])
def test_convolutions_have_one_axis_to_three(axes):
    layer = Convolution(num_output_maps=2, kernel_size_nd=(2,) * axes)
    x, weights = random_codes((1, 2, *[3] * axes)), random_codes((2, 2, *[2] * axes), seed=1)
    found = weighted_sums(call_of_layer(layer, operand(x), operand(weights)))
    first = x[(slice(None), slice(None), *[slice(0, 2)] * axes)]
    assert found.shape == (1, 2, *[2] * axes)
    assert found[(0, 1, *[0] * axes)] == (first[0].astype(int) * weights[1]).sum()


@pytest.mark.parametrize("groups", [1, 2])
def test_sums_of_a_deconvolution_are_those_of_the_windows_that_overlap(groups):
    C, K = 4, 6
    layer = Deconvolution(num_output_maps=K, kernel_size_nd=(3, 2), stride_nd=(2, 1), num_groups=groups)
    x, weights = random_codes((1, C, 2, 3)), random_codes((C, K // groups, 3, 2), seed=1)
    zeros = np.arange(K) - 3
    found = weighted_sums(call_of_layer(layer, operand(x, 1.0, 7), operand(weights, np.ones(K), zeros)))
    expected = np.zeros((1, K, 5, 4), np.int64)
    for c, j, h, w in itertools.product(range(C), range(K // groups), range(2), range(3)):
        k = c // (C // groups) * (K // groups) + j
        window = weights[c, j].astype(int) - zeros[k]
        expected[0, k, 2 * h : 2 * h + 3, w : w + 2] += (int(x[0, c, h, w]) - 7) * window
    np.testing.assert_array_equal(found, expected)


def test_sums_of_a_fully_connected_layer_are_over_everything_in_a_sample():
    x, weights = random_codes((2, 3, 2, 2)), random_codes((4, 12), seed=1)
    bias = np.array([1, 2, 3, 4], np.int32)
    call = call_of_layer(
        FullyConnected(num_output_channels=4), operand(x, 1.0, 5), operand(weights), operand(bias, None)
    )
    expected = (x.reshape(2, 12).astype(int) - 5) @ weights.astype(int).T + bias
    np.testing.assert_array_equal(weighted_sums(call), expected.reshape(2, 4, 1, 1))


@pytest.mark.parametrize("op", [MatrixOperation.NONE, MatrixOperation.TRANSPOSE])
def test_both_operands_of_a_matrix_product_have_zero_points(op):
    x, weights = random_codes((2, 3, 5), np.uint8), random_codes((5, 4), np.uint8, 1)
    zeros = np.array([3, 0, 255, 128])
    given = weights if op is MatrixOperation.NONE else np.ascontiguousarray(weights.T)
    layer = MatrixMultiply(op1=op)
    call = call_of_layer(layer, operand(x, 1.0, 9), operand(given[None], np.ones(4), zeros))
    np.testing.assert_array_equal(weighted_sums(call), (x.astype(int) - 9) @ (weights.astype(int) - zeros))


def test_sums_wrap_around_as_int32_does():
    layer = FullyConnected(num_output_channels=1)
    x, weights = np.full((1, 1, 1, 1), 127, np.int8), np.full((1, 1), 127, np.int8)
    bias = np.array([2**31 - 1], np.int32)
    assert weighted_sums(call_of_layer(layer, operand(x), operand(weights), operand(bias, None))).item() == (
        127 * 127 - 2**31 - 1
    )


def one_product(*, bias=None, limits=(-np.inf, np.inf), scale=2.0, zero_point=0, record=REAL, **options):
    """Codes of 1 * [-3, -1, 1, 3, 100] in steps of two."""
    layer = Convolution(num_output_maps=1, kernel_size_nd=(1,))
    x = np.array([[[-3, -1, 1, 3, 100]]], np.int8)
    operands = [operand(x), operand(np.ones((1, 1, 1), np.int8))]
    operands += [] if bias is None else [operand(bias, None)]
    call = call_of_layer(layer, *operands, scale=scale, zero_point=zero_point, limits=limits)
    codes = weighted(call, rule(record, **options))
    assert codes.dtype == np.int8
    return codes.ravel().tolist()


def test_codes_in_hand_computed_numbers():
    assert one_product() == [-2, 0, 0, 2, 50]
    assert one_product(zero_point=100) == [98, 100, 100, 102, 127]
    assert one_product(record=attrs.evolve(REAL, rounding=RoundingMode.HALF_AWAY_FROM_ZERO)) == [-2, -1, 1, 2, 50]
    assert one_product(record=attrs.evolve(REAL, rounding=RoundingMode.HALF_UP)) == [-1, 0, 1, 2, 50]


def test_a_fused_activation_limits_the_codes():
    assert one_product(limits=(0.0, np.inf), zero_point=3) == [3, 3, 3, 5, 53]
    assert one_product(limits=(0.0, 6.0), zero_point=3) == [3, 3, 3, 5, 6]
    assert one_product(limits=(0.0, 5.0), limit_rounding="half_to_even") == [0, 0, 0, 2, 2]
    assert one_product(limits=(0.0, 5.0)) == [0, 0, 0, 2, 3]


def test_an_integer_bias_is_in_the_sums_and_a_real_one_is_in_the_outputs_units():
    assert one_product(bias=np.array([1], np.int32)) == [-1, 0, 1, 2, 50]
    assert one_product(bias=np.array([1.0], np.float32)) == [-1, 0, 1, 2, 50]
    assert one_product(bias=np.array([0.25], np.float32)) == [-1, 0, 1, 2, 50]  # -1.375, -0.375, 0.625, 1.625


def test_channels_that_a_vector_kernel_leaves_over_are_rounded_their_own_way():
    layer = Convolution(num_output_maps=10, kernel_size_nd=(1, 1))
    call = call_of_layer(
        layer, operand(np.full((1, 1, 1, 2), -1, np.int8)), operand(np.ones((10, 1, 1, 1), np.int8)), scale=2.0
    )
    record = attrs.evolve(REAL, rounding=RoundingMode.HALF_UP)
    found = weighted(call, rule(record, **{VECTOR_CHANNELS: 8, TAIL_ROUNDING: "half_away_from_zero"}))
    np.testing.assert_array_equal(found[0, :, 0], [[0, 0]] * 8 + [[-1, -1]] * 2)


def test_elements_that_a_vector_kernel_leaves_over_are_the_last_ones_with_channels_last():
    x = np.full((2, 3, 3), -1, np.int8)
    call = call_of_layer(Identity(), operand(x), scale=2.0)
    record = attrs.evolve(REAL, rounding=RoundingMode.HALF_UP)
    options = {VECTOR_ELEMENTS: 16, TAIL_ROUNDING: "half_away_from_zero"}
    found = requantized(call, rule(record, requantized, **options))
    assert np.moveaxis(found, 1, -1).ravel().tolist() == [0] * 16 + [-1] * 2


@pytest.mark.parametrize(
    ("dtype", "to_type"), [*itertools.product((np.int8, np.uint8), (DataType.INT8, DataType.UINT8))]
)
def test_all_codes_are_requantized_from_either_type_to_either(dtype, to_type):
    x = np.arange(256, dtype=np.uint8).view(dtype).reshape(1, 256)
    call = call_of_layer(Identity(), operand(x, 0.5, 3), scale=0.75, zero_point=10, to_type=to_type)
    units = (x.astype(np.float64) - 3) * 2 / 3
    low, high = call.code_range
    expected = np.clip(np.rint(units) + 10, low, high).astype(to_type.numpy)
    found = requantized(call, rule(REAL, requantized))
    assert found.dtype == to_type.numpy
    np.testing.assert_array_equal(found, expected)


def test_a_ratio_of_eight_bits_is_rounded_before_it_is_used():
    """256 * 0.3 / 1 is 76.8, and 77 / 256 of 100 is 30.08; 100 * 77 + 128 shifted by 8 is 30, of -100 it is -30."""
    x = np.array([[100, -100, 5, -5]], np.int8)
    call = call_of_layer(Identity(), operand(x, 0.3), scale=1.0)
    record = attrs.evolve(REAL, rounding=RoundingMode.HALF_UP)
    assert requantized_by_shift(call, rule(record, requantized_by_shift, fraction_bits=8)).tolist() == [
        [30, -30, 2, -2]
    ]
