"""Engines for the DLA compute what its arithmetic says, bit for bit as numpy has it here."""

from __future__ import annotations

import numpy as np
import pytest

from dryfit.builder.config.enumerations import BuilderFlag
from dryfit.building import Builder
from dryfit.engine.engine import Engine
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.window_layer import PoolingType
from dryfit.network.network import Network
from dryfit.quantization.rounding import RoundingMode, round_values
from dryfit_dla.kernels import BLOCK, TABLE, optimized_softmax

EVEN, AWAY = RoundingMode.HALF_TO_EVEN, RoundingMode.HALF_AWAY_FROM_ZERO


def generator() -> np.random.Generator:
    return np.random.default_rng(5)


def built(network: Network, software: str | None = None) -> Engine:
    """An engine all of whose layers are on the DLA."""
    builder = Builder()
    config = builder.create_builder_config()
    config.default_device_type = "DLA"
    config.allow_fallback("GPU")
    for flag in (BuilderFlag.INT8, BuilderFlag.FP16):
        config.set_flag(flag)
    if software is not None:
        config.set_software("DLA", software)
    engine = builder.build_engine(network, config)
    assert {layer.device for layer in engine.plan.layers} == {"DLA"}
    return engine


def run(engine: Engine, x: np.ndarray) -> np.ndarray:
    return engine.create_execution_context(num_threads=1).run({"x": x})["y"]


def codes(values: np.ndarray, mode: RoundingMode) -> np.ndarray:
    return np.clip(round_values(values.astype(np.float32), mode), -128, 127)


def network_of(shape, add, ranges):
    """A network of one layer, `add(network, x)`, with a range for x and one for y."""
    network = Network()
    x = network.add_input("x", DataType.FLOAT, shape)
    layer = add(network, x)
    layer.name = "layer"
    network.rename_tensor(layer.get_output(0), "y")
    network.mark_output(layer.get_output(0))
    for tensor, threshold in zip((x, layer.get_output(0)), ranges, strict=True):
        tensor.set_dynamic_range(-threshold, threshold)
    return network


@pytest.mark.parametrize(("software", "mode"), [("8.6", AWAY), ("10.3", EVEN), (None, EVEN)])
def test_an_average_of_codes_rounds_ties_as_the_software_version_does(software, mode):
    network = network_of(
        (1, 32, 4, 8), lambda net, x: net.add_pooling_nd(x, PoolingType.AVERAGE, (1, 2)), (127.0, 127.0)
    )
    network.layer("layer").stride_nd = (1, 2)
    network.layer("layer").precision = DataType.INT8  # alone it would gain nothing by it
    x = generator().integers(-127, 128, (1, 32, 4, 8)).astype(np.float32)
    means = (x[..., ::2] + x[..., 1::2]) / 2
    assert np.any(means % 1 == 0.5)
    np.testing.assert_array_equal(run(built(network, software), x), codes(means, mode))


@pytest.mark.parametrize(
    ("software", "weight_mode", "mode"), [("8.6", AWAY, AWAY), ("10.3", AWAY, EVEN), ("10.16", EVEN, EVEN)]
)
def test_a_convolution_sums_exactly_and_rounds_weights_and_results_as_its_version_does(software, weight_mode, mode):
    # Weights are halves, up to 127, times a power of two a channel: that is its scale, and half of them are ties.
    scales = np.float32(2.0) ** (np.arange(32) % 3).astype(np.float32)
    halves = generator().integers(-253, 254, (32, 32, 3, 3)).astype(np.float32) / 2
    halves[:, 0, 0, 0] = 127.0
    kernel = halves * scales[:, None, None, None]
    bias = generator().integers(-99, 100, 32).astype(np.float32)
    network = network_of(
        (1, 32, 5, 5), lambda net, x: net.add_convolution_nd(x, 32, (3, 3), kernel, bias), (127, 127 * 2**15)
    )
    x = generator().integers(-127, 128, (1, 32, 5, 5)).astype(np.float32)
    weights = codes(halves, weight_mode)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    sums = np.einsum("nchwij,kcij->nkhw", windows, weights, dtype=np.float64)
    assert np.abs(sums).max() > 2**17
    unit = np.float32(2.0**15)
    real = sums.astype(np.float32) * (scales / unit)[:, None, None] + (bias / unit)[:, None, None]
    np.testing.assert_array_equal(run(built(network, software), x), codes(real, mode) * unit)


def test_weights_that_are_ties_differ_between_the_versions():
    halves = np.full((32, 32, 1, 1), 0.5, np.float32)
    halves[:, 0] = 127.0
    network = network_of(
        (1, 32, 2, 2), lambda net, x: net.add_convolution_nd(x, 32, (1, 1), halves), (127.0, 127 * 2**8)
    )
    x = np.full((1, 32, 2, 2), 127.0, np.float32)
    old, new = (run(built(network, one), x).max() for one in ("10.3", "10.16"))
    assert old == round(127 * (127 + 31) / 256) * 256
    assert new == round(127 * 127 / 256) * 256


@pytest.mark.parametrize("kind", [ActivationType.SIGMOID, ActivationType.TANH])
def test_a_promoted_layer_is_computed_in_fp16_and_rounded_to_int8_by_nobody(kind):
    network = network_of((1, 32, 4, 4), lambda net, x: net.add_activation(x, kind), (4.0, 1.0))
    engine = built(network)
    assert [layer.precision for layer in engine.plan.layers] == [DataType.HALF]
    x = generator().standard_normal((1, 32, 4, 4)).astype(np.float32)
    half = x.astype(np.float16).astype(np.float64)
    exact = 1 / (1 + np.exp(-half)) if kind is ActivationType.SIGMOID else np.tanh(half)
    found = run(engine, x)
    assert np.array_equal(found, found.astype(np.float16))
    assert np.abs(found - exact).max() <= 2.0**-11
    assert np.unique(found).size > 256


def softmax(shape, axis) -> Network:
    network = Network()
    x = network.add_input("x", DataType.FLOAT, shape)
    layer = network.add_softmax(x)
    layer.axes = 1 << axis
    network.rename_tensor(layer.get_output(0), "y")
    network.mark_output(layer.get_output(0))
    return network


@pytest.mark.parametrize(("shape", "axis"), [((1, 80, 2, 3), 1), ((2, 3, 33, 2), 2), ((1, 2, 1, 16), 3)])
def test_a_wide_softmax_is_the_approximation_that_is_written_down(shape, axis):
    engine = built(softmax(shape, axis))
    assert "dla.optimized_softmax" in [one.kernel for one in engine.plan.operations]
    x = (generator().standard_normal(shape) * 3).astype(np.float32)
    half = np.moveaxis(x.astype(np.float16), axis, 0)
    expected = np.empty_like(half)
    for index in np.ndindex(*half.shape[1:]):
        line = half[(slice(None), *index)]
        below = [np.float32(one) for one in (line - line.max())]
        exponents = [_exponential(one) for one in below]
        total = np.float16(0)
        for start in range(0, len(exponents), BLOCK):
            block = np.float32(0)
            for one in exponents[start : start + BLOCK]:
                block = np.float32(block + np.float32(one))
            total = np.float16(np.float32(total) + block)
        expected[(slice(None), *index)] = np.array(exponents, np.float16) * (np.float16(1) / total)
    np.testing.assert_array_equal(run(engine, x), np.moveaxis(expected, 0, axis).astype(np.float32))


def _exponential(below: np.float32) -> np.float16:
    place = min(-below, np.float32(16)) * np.float32(16)
    entry = min(int(place), len(TABLE) - 2)
    step = np.float32(TABLE[entry + 1] - TABLE[entry])
    return np.float16(TABLE[entry] + np.float32(step * np.float32(place - np.float32(entry))))


@pytest.mark.parametrize("shape", [(1, 80, 1, 1), (4, 80, 1, 1)])
def test_a_softmax_with_nothing_beside_its_axis_is_exact(shape):
    engine = built(softmax(shape, 1))
    assert "dla.optimized_softmax" not in [one.kernel for one in engine.plan.operations]
    x = generator().standard_normal(shape).astype(np.float32)
    exact = np.exp(x.astype(np.float16).astype(np.float64))
    exact /= exact.sum(axis=1, keepdims=True)
    assert np.abs(run(engine, x) / exact - 1).max() < 2.0**-10


def test_the_error_of_a_wide_softmax_grows_with_the_axis():
    errors = []
    for extent in (16, 128, 1024):
        x = np.random.default_rng(1).standard_normal((1, extent, 8, 8)).astype(np.float16)
        exact = np.exp(x.astype(np.float64))
        exact /= exact.sum(axis=1, keepdims=True)
        errors.append(np.sqrt(np.mean((optimized_softmax(x, 1) / exact - 1) ** 2)))
    assert errors == sorted(errors)
    assert errors[0] > 2.0**-13
    assert errors[-1] < 2.0**-6


def test_what_is_not_finite_spreads_along_its_own_axis_alone():
    x = np.zeros((3, 4), np.float16)
    x[1] = [np.nan, np.inf, -np.inf, 1]
    found = optimized_softmax(x, 0)
    assert np.isnan(found[:, :2]).all()
    np.testing.assert_array_equal(found[:, 2], np.array([0.5, TABLE[-1] / 2, 0.5]).astype(np.float16))
    assert np.isfinite(found[:, 3]).all()
