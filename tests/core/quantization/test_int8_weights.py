"""Weights in INT8: scales a channel, the limits, and where ties go."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.builder.networks import image_network, named, weights

from dryfit.errors import BuildError
from dryfit.network.layers.matrix import MatrixOperation
from dryfit.quantization.int8_weights import constant_weights, int8_weights
from dryfit.quantization.rounding import RoundingMode

EVEN, UP, AWAY = RoundingMode.HALF_TO_EVEN, RoundingMode.HALF_UP, RoundingMode.HALF_AWAY_FROM_ZERO


def convolution_of(kernel):
    network, x = image_network((1, kernel.shape[1], 6, 6))
    return network.add_convolution_nd(x, kernel.shape[0], kernel.shape[2:], kernel)


@pytest.mark.parametrize(
    ("rounding", "expected"), [(EVEN, [-4, -2, 2, 127]), (UP, [-3, -2, 3, 127]), (AWAY, [-4, -3, 3, 127])]
)
def test_ties_go_where_the_device_has_them_go(rounding, expected):
    kernel = np.array([-3.5, -2.5, 2.5, 127], np.float32).reshape(1, 4, 1, 1)
    found = int8_weights(convolution_of(kernel), kernel, rounding)
    assert found.values.reshape(-1).tolist() == expected
    assert found.scales.tolist() == [1.0]


def test_each_output_channel_has_the_scale_of_its_largest_magnitude_rounded_once_to_binary32():
    kernel = weights(8, 3, 3, 3)
    found = int8_weights(convolution_of(kernel), kernel, EVEN)
    for channel, scale in enumerate(found.scales):
        assert scale == np.float32(float(np.abs(kernel[channel]).max()) / 127)
    assert (found.axis, found.values.shape) == (0, kernel.shape)
    assert np.abs(found.values.reshape(8, -1)).max(axis=1).tolist() == [127] * 8
    error = np.abs(found.values * found.scales[:, None, None, None].astype(np.float64) - kernel)
    assert (error <= 0.5001 * found.scales[:, None, None, None]).all()


def test_minus_128_is_never_used_and_a_channel_of_zeros_stays_zero():
    kernel = np.stack([np.full((1, 1, 2), -1.0), np.zeros((1, 1, 2))]).astype(np.float32)
    found = int8_weights(convolution_of(kernel), kernel, AWAY)
    assert found.values.min() == -127
    assert found.scales[1] == 1.0
    assert not found.values[1].any()


def test_the_groups_of_a_deconvolution_have_channels_of_their_own():
    kernel = weights(4, 3, 2, 2)
    network, x = image_network((1, 4, 5, 5))
    layer = network.add_deconvolution_nd(x, 6, (2, 2), kernel)
    layer.num_groups = 2
    found = int8_weights(layer, kernel, EVEN)
    assert (found.scales.shape, found.block_shape) == ((2, 3, 1, 1), (2, 1, 2, 2))
    for group in range(2):
        for channel in range(3):
            largest = np.abs(kernel[2 * group : 2 * group + 2, channel]).max()
            assert found.scales[group, channel, 0, 0] == np.float32(float(largest) / 127)


@pytest.mark.parametrize(("operation", "axis"), [(MatrixOperation.NONE, 1), (MatrixOperation.TRANSPOSE, 0)])
def test_the_columns_of_a_product_are_its_channels(operation, axis):
    matrix = weights(8, 8)
    network, x = image_network((4, 8))
    constant = named(network.add_constant((8, 8), matrix), "k")
    layer = network.add_matrix_multiply(x, MatrixOperation.NONE, constant, operation)
    known = constant_weights(layer)
    np.testing.assert_array_equal(known, matrix)
    found = int8_weights(layer, known, EVEN)
    assert (found.axis, found.scales.shape) == (axis, (8,))
    np.testing.assert_array_equal(
        found.scales, (np.abs(matrix).max(axis=1 - axis).astype(np.float64) / 127).astype("f")
    )


def test_a_product_of_two_inputs_has_no_weights():
    network, x = image_network((4, 8))
    layer = network.add_matrix_multiply(x, MatrixOperation.NONE, x, MatrixOperation.TRANSPOSE)
    assert constant_weights(layer) is None


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_refused_by_the_layers_name(wrong):
    kernel = weights(2, 3, 1, 1)
    kernel[1, 0] = wrong
    layer = convolution_of(kernel)
    with pytest.raises(BuildError, match=r"must be finite") as refused:
        int8_weights(layer, kernel, EVEN)
    assert layer.name in str(refused.value)
