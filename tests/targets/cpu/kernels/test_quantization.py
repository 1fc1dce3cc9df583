"""Quantize and dequantize layers that stand alone, against their references, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from tests.targets.cpu.group_runner import LAYOUTS, Guarded, chosen_kernel, reference_kernel, run_group

from dryfit.network.data_types import DataType
from dryfit.network.layers.generators import Constant
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.network import Network


def assert_like_reference(
    layer, x, scale, layout="channels_last", input_layout="linear", zero_point=None, name="cpu.quantization"
):
    """The native kernel gives the reference's bits, for one thread and for three."""
    network = Network()
    data = network.add_input("x", DataType.from_numpy(x.dtype), x.shape)
    scales = network.add_layer(Constant(shape=scale.shape, weights=scale), []).get_output(0)
    feeds = {scales.name: scale}
    if zero_point is None:
        network.add_layer(layer, [data, scales])
    else:
        zeros = network.add_layer(Constant(shape=zero_point.shape, weights=zero_point), []).get_output(0)
        network.add_layer(layer, [data, scales, zeros])
        feeds[zeros.name] = zero_point
    array = Guarded.new(x.shape, x.dtype, input_layout).array
    array[...] = x
    kernel = chosen_kernel(network, [layer])
    assert kernel.name == name
    feeds["x"] = array
    actual = run_group(network, [layer], feeds, kernel=kernel, layout=layout)
    expected = run_group(network, [layer], feeds, kernel=reference_kernel(), layout=layout)
    np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(run_group(network, [layer], feeds, kernel=kernel, layout=layout, threads=3), actual)
    return actual


def numbers(shape, seed=0):
    """Normal numbers of some hundred, ties, what lies beside them, and what is no number."""
    x = (np.random.default_rng(seed).standard_normal(shape) * 90).astype(np.float32)
    ties = np.arange(-140, 140, dtype=np.float32) + np.float32(0.5)
    special = np.concatenate([ties, np.nextafter(ties, 0), [np.inf, -np.inf, np.nan, -0.0, 3e38]]).astype(np.float32)
    flat = x.reshape(-1)
    flat[: min(flat.size, special.size)] = special[: flat.size]
    return x


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(1, 3, 5, 40), (2, 3, 3, 16), (1, 3, 4, 7), (2, 4, 5, 33), (3, 700), (1000,)])
def test_real_numbers_are_divided_rounded_and_saturated(shape, layout):
    result = assert_like_reference(Quantize(), numbers(shape), np.array(1.0, np.float32), layout)
    assert result.min() == -128
    assert_like_reference(Quantize(), numbers(shape), np.array([0.3], np.float32), layout, "strided")


@pytest.mark.parametrize("scale", [1e-30, 3e-6, 0.05, 1 / 3, 0.99999994, 1.0000001, 7.77, 1e30])
def test_a_quotient_beside_a_tie_is_rounded_as_the_division_is(scale):
    scale = np.float32(scale)
    ties = (np.arange(-130, 130) + 0.5).astype(np.float32) * scale
    x = [ties]
    for direction in (np.inf, -np.inf):
        beside = ties
        for _ in range(3):
            beside = np.nextafter(beside, np.float32(direction))
            x.append(beside)
    whole = np.concatenate([*x, np.array([np.nan, np.inf, -np.inf, 1e38, -1e-45], np.float32)])
    assert_like_reference(Quantize(), whole, np.array(scale), "linear")


def test_a_scale_may_follow_an_axis():
    scales = np.linspace(0.1, 3, 5).astype(np.float32)
    assert_like_reference(Quantize(axis=1), numbers((2, 5, 6, 20)), scales)
    x = np.random.default_rng(0).integers(-128, 128, (2, 5, 6, 20)).astype(np.int8)
    assert_like_reference(Dequantize(axis=1), x, scales)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_byte_is_multiplied_by_the_scale(layout):
    x = np.arange(-128, 128, dtype=np.int8).reshape(2, 4, 4, 8)
    assert_like_reference(Dequantize(), x, np.array(0.1, np.float32), layout)


def test_fp16_is_quantized_and_given_too():
    assert_like_reference(
        Quantize(), np.clip(numbers((2, 8, 5, 20)), -6e4, 6e4).astype(np.float16), np.array(0.7, np.float32)
    )
    x = np.random.default_rng(0).integers(-128, 128, (2, 5, 6, 20)).astype(np.int8)
    assert_like_reference(Dequantize(to_type=DataType.HALF), x, np.array(0.0137, np.float32))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(1, 3, 5, 40), (1, 3, 4, 7), (2, 4, 5, 33), (1000,)])
@pytest.mark.parametrize("zero_point", [-128, -3, 127])
def test_a_zero_point_is_added_to_what_is_rounded(shape, layout, zero_point):
    zero = np.array(zero_point, np.int8)
    assert_like_reference(Quantize(), numbers(shape), np.array(1.0, np.float32), layout, zero_point=zero)
    scale = np.array([0.3], np.float32)
    assert_like_reference(Quantize(), numbers(shape), scale, layout, "strided", zero.reshape(1))


def test_a_zero_point_may_follow_an_axis_as_the_scale_does():
    scales, zeros = np.linspace(0.1, 3, 5).astype(np.float32), np.array([-128, 127, 0, 5, -1], np.int8)
    assert_like_reference(Quantize(axis=1), numbers((2, 5, 6, 20)), scales, zero_point=zeros)
    x = np.random.default_rng(0).integers(-128, 128, (2, 5, 6, 20)).astype(np.int8)
    assert_like_reference(Dequantize(axis=1), x, scales, zero_point=zeros)
    halves = np.clip(numbers((2, 5, 6, 20)), -6e4, 6e4).astype(np.float16)
    assert_like_reference(Quantize(axis=1), halves, scales, zero_point=zeros)
    assert_like_reference(Dequantize(axis=1, to_type=DataType.HALF), x, scales, zero_point=zeros)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("zero_point", [-128, 127])
def test_of_every_byte_the_distance_from_the_zero_point_is_multiplied(layout, zero_point):
    x = np.arange(-128, 128, dtype=np.int8).reshape(2, 4, 4, 8)
    zero = np.array(zero_point, np.int8)
    assert_like_reference(Dequantize(), x, np.array(0.1, np.float32), layout, zero_point=zero)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("zero_point", [None, 0, 131, 255])
def test_unsigned_codes_are_those_of_signed_ones_128_higher(layout, zero_point):
    zero = None if zero_point is None else np.array(zero_point, np.uint8)
    scale, name = np.array(0.7, np.float32), "cpu.unsigned_quantization"
    codes = np.arange(256, dtype=np.uint8).reshape(2, 4, 4, 8)
    assert_like_reference(Dequantize(), codes, scale, layout, layout, zero_point=zero, name=name)
    quantize = Quantize(to_type=DataType.UINT8)
    assert_like_reference(quantize, numbers((1, 3, 5, 40)), scale, layout, zero_point=zero, name=name)


def test_unsigned_zero_points_may_follow_an_axis():
    scales, zeros = np.linspace(0.1, 3, 5).astype(np.float32), np.array([0, 255, 128, 7, 129], np.uint8)
    codes = np.random.default_rng(0).integers(0, 256, (2, 5, 6, 20)).astype(np.uint8)
    name = "cpu.unsigned_quantization"
    assert_like_reference(Dequantize(axis=1), codes, scales, zero_point=zeros, name=name)
    quantize = Quantize(axis=1, to_type=DataType.UINT8)
    assert_like_reference(quantize, numbers((2, 5, 6, 20)), scales, zero_point=zeros, name=name)
