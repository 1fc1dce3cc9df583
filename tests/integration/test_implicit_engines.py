"""Engines built in INT8 from dynamic ranges, held against the definition written out in numpy.

I32 sums -> F32 -> * input scale * weight scale / output scale -> + bias / output scale -> ReLU -> round -> saturate
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from tests.core.builder.networks import activation, add, image_network, named

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.building import Builder
from dryfit.network.data_types import DataType
from dryfit.network.layers.window_layer import PoolingType
from dryfit.quantization.int8_steps import int8_scale
from dryfit.quantization.rounding import RoundingMode, round_values

F32, INT8 = np.float32, DataType.INT8
EVEN, UP, AWAY = RoundingMode.HALF_TO_EVEN, RoundingMode.HALF_UP, RoundingMode.HALF_AWAY_FROM_ZERO


def int8_config(device="GPU", software=None):
    config = BuilderConfig()
    config.set_flag(BuilderFlag.INT8)
    config.default_device_type = device
    if software:
        config.set_software(device, software)
    return config


def convolution_network(kernel, bias, ranges, extent=9):
    """x -> convolution -> ReLU, whose output is INT8."""
    network, x = image_network((2, kernel.shape[1], extent, extent))
    first = named(network.add_convolution_nd(x, len(kernel), kernel.shape[2:], kernel, bias), "convolution")
    relu = activation(network, first, "relu")
    network.layer("relu").set_output_type(0, INT8)
    network.mark_output(relu)
    for name, threshold in ranges.items():
        network.tensor(name).dynamic_range = (-threshold, threshold)
    return network


def run(network, config, *arrays):
    engine = Builder().build_engine(network, config)
    return engine, next(iter(engine.create_execution_context().run(*arrays).values()))


def quantized(array, scale, rounding=EVEN, low=-128):
    return np.clip(round_values(array / F32(scale), rounding), low, 127).astype(np.int8)


def sums_of(x, kernel):
    """Exact INT32 sums of a convolution without padding."""
    windows = sliding_window_view(x.astype(np.int64), kernel.shape[2:], axis=(2, 3))
    return np.einsum("nchwij,kcij->nkhw", windows, kernel.astype(np.int64)).astype(np.int32)


def defined(x, kernel, bias, ranges, weight_rounding):
    """The definition, step by step in FP32."""
    scale = {name: int8_scale(threshold) for name, threshold in ranges.items()}
    weight_scales = (np.abs(kernel).max(axis=(1, 2, 3)).astype(np.float64) / 127).astype(F32)
    spread = weight_scales[:, None, None, None]
    weights = quantized(kernel / spread, 1.0, weight_rounding, low=-127)
    sums = sums_of(quantized(x, scale["x"]), weights)
    multiplier = (weight_scales.astype(np.float64) * scale["x"] / scale["relu"]).astype(F32)
    real = sums.astype(F32) * multiplier[:, None, None]
    real = real + (bias.astype(np.float64) / scale["relu"]).astype(F32)[:, None, None]
    return quantized(np.maximum(real, F32(0)), 1.0)


def tied_kernel():
    """Weights of channel scale 1, many of them half-way between whole numbers."""
    kernel = np.random.default_rng(1).integers(-40, 41, (8, 4, 3, 3)).astype(F32) / 2
    kernel[:, 0, 0, 0] = 127
    return kernel


@pytest.mark.parametrize(
    ("device", "software", "rounding"), [("GPU", None, UP), ("DLA", "8.6", AWAY), ("DLA", "10.16", EVEN)]
)
def test_weights_are_rounded_as_the_device_and_its_software_round_them(device, software, rounding):
    kernel, bias = tied_kernel(), np.arange(-4, 4, dtype=F32) * 16
    # No whole number divided by 61 is half-way between two: only weights meet ties here.
    ranges = {"x": 127.0, "convolution": 127.0 * 61, "relu": 127.0 * 61}
    x = np.random.default_rng(2).integers(-127, 128, (2, 4, 9, 9)).astype(F32)
    config = int8_config(device, software)
    config.set_flag(BuilderFlag.GPU_FALLBACK)
    engine, found = run(convolution_network(kernel, bias, ranges), config, x)
    assert {operation.device for operation in engine.plan.operations if "convolution" in operation.layers} == {device}
    expected = defined(x, kernel, bias, ranges, rounding)
    np.testing.assert_array_equal(found, expected)
    others = {UP, AWAY, EVEN} - {rounding}
    assert all((defined(x, kernel, bias, ranges, other) != expected).any() for other in others)


def random_case(seed, extent=9):
    numbers = np.random.default_rng(seed)
    kernel = numbers.standard_normal((16, 8, 3, 3)).astype(F32)
    return (
        kernel,
        numbers.standard_normal((2, 8, extent, extent)).astype(F32),
        {"x": 3.0, "convolution": 30.0, "relu": 30.0},
    )


@pytest.mark.parametrize("seed", range(3))
def test_a_convolution_and_its_relu_are_one_step_with_one_rounding(seed):
    kernel, x, ranges = random_case(seed)
    bias = np.zeros(16, F32)
    engine, found = run(convolution_network(kernel, bias, ranges), int8_config(), x)
    np.testing.assert_array_equal(found, defined(x, kernel, bias, ranges, UP))
    assert [operation.kernel for operation in engine.plan.operations] == ["cpu.quantization", "cpu.integer_convolution"]


def test_a_bias_is_added_in_fp32_after_the_scale():
    kernel, x, ranges = random_case(4, extent=65)
    bias = np.random.default_rng(5).standard_normal(16).astype(F32) * 3
    _, found = run(convolution_network(kernel, bias, ranges, extent=65), int8_config(), x)
    np.testing.assert_array_equal(found, defined(x, kernel, bias, ranges, UP))


def test_a_residual_is_added_in_real_numbers_before_the_only_rounding():
    kernel, x, _ = random_case(6)
    kernel = kernel[:8, :, 1:2, 1:2]
    network, tensor = image_network((2, 8, 9, 9))
    first = named(network.add_convolution_nd(tensor, 8, (1, 1), np.ascontiguousarray(kernel)), "convolution")
    relu = activation(network, add(network, first, tensor, "sum"), "relu")
    network.layer("relu").set_output_type(0, INT8)
    network.mark_output(relu)
    thresholds = {"x": 3.0, "convolution": 9.0, "sum": 12.0, "relu": 10.0}
    for name, threshold in thresholds.items():
        network.tensor(name).dynamic_range = (-threshold, threshold)
    engine, found = run(network, int8_config(), x)
    weight_scales = (np.abs(kernel).max(axis=(1, 2, 3)).astype(np.float64) / 127).astype(F32)
    weights = quantized(kernel / weight_scales[:, None, None, None], 1.0, UP, low=-127)
    whole, unit = quantized(x, int8_scale(3.0)), np.float64(int8_scale(10.0))
    multiplier = (weight_scales.astype(np.float64) * int8_scale(3.0) / unit).astype(F32)
    real = sums_of(whole, weights).astype(F32) * multiplier[:, None, None]
    real = real + whole.astype(F32) * F32(np.float64(int8_scale(3.0)) / unit)
    np.testing.assert_array_equal(found, quantized(np.maximum(real, F32(0)), 1.0))
    assert len(engine.plan.operations) == 2


def test_an_int8_network_takes_and_gives_whole_numbers():
    kernel, _, ranges = random_case(7)
    bias = np.zeros(16, F32)
    network = convolution_network(kernel, bias, ranges)
    network.inputs[0].dtype = INT8
    codes = np.random.default_rng(8).integers(-128, 128, (2, 8, 9, 9)).astype(np.int8)
    engine, found = run(network, int8_config(), codes)
    assert found.dtype == np.int8
    real = codes * F32(int8_scale(ranges["x"]))
    np.testing.assert_array_equal(found, defined(real, kernel, bias, ranges, UP))
    assert [operation.kernel for operation in engine.plan.operations] == ["cpu.integer_convolution"]


def test_values_that_are_only_moved_or_compared_stay_the_same_whole_numbers():
    network, x = image_network((1, 4, 6, 6))
    x.dtype = INT8
    pooled = named(network.add_pooling_nd(x, PoolingType.MAX, (2, 2)), "pooled")
    network.layer("pooled").stride_nd = (2, 2)
    turned = network.add_shuffle(pooled)
    turned.first_transpose = (0, 2, 3, 1)
    turned.precision = INT8
    turned.set_output_type(0, INT8)
    network.mark_output(named(turned, "turned"))
    network.layer("pooled").precision = INT8
    x.dynamic_range = (-2, 2)
    network.tensor("turned").dynamic_range = (-2, 2)
    codes = np.random.default_rng(9).integers(-128, 128, (1, 4, 6, 6)).astype(np.int8)
    _, found = run(network, int8_config(), codes)
    largest = codes.reshape(1, 4, 3, 2, 3, 2).max(axis=(3, 5))
    np.testing.assert_array_equal(found, largest.transpose(0, 2, 3, 1))


def test_the_last_sum_before_a_real_output_is_computed_in_fp32():
    kernel, x, ranges = random_case(10)
    network = convolution_network(kernel, np.zeros(16, F32), ranges)
    network.layer("relu").reset_output_type(0)
    engine, found = run(network, int8_config(), x)
    assert {operation.precision for operation in engine.plan.operations} == {DataType.FLOAT}
    windows = sliding_window_view(x.astype(np.float64), (3, 3), axis=(2, 3))
    np.testing.assert_allclose(
        found, np.maximum(np.einsum("nchwij,kcij->nkhw", windows, kernel), 0), rtol=1e-4, atol=1e-4
    )
