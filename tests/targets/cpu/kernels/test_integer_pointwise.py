"""Sums, activations, concatenation, pooling and fully connected layers of quantized values, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from tests.targets.cpu.group_runner import LAYOUTS, run_group
from tests.targets.cpu.kernels.integer_definition import requantized
from tests.targets.cpu.kernels.quantized_groups import QuantizedChain, assert_like_definition, random_bytes

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import Activation, ActivationType
from dryfit.network.layers.convolution import FullyConnected
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation
from dryfit.network.layers.matrix import MatrixMultiply, MatrixOperation
from dryfit.network.layers.movement import Concatenation
from dryfit.network.layers.quantization import Dequantize
from dryfit.network.layers.reduction import Reduce, ReduceOperation
from dryfit.network.layers.window_layer import Pooling, PoolingType
from dryfit.quantization.rounding import RoundingMode, round_values
from dryfit.target.group import LayerGroup
from dryfit_cpu.kernels import convolution, integer_matrix_multiply, integer_pooling
from dryfit_cpu.kernels.integer_pointwise import concatenate_integers, look_up, map_integers
from dryfit_cpu.kernels.integer_weights import integer_weights
from dryfit_cpu.kernels.requantization import in_units, requantization_of

SHAPE = (2, 20, 5, 9)


def source(chain):
    """The first input as sums, and its scale."""
    return chain.feeds()["x"].astype(np.int32), np.array(float(np.float32(0.05))), None


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rounding", RoundingMode)
def test_a_sum_of_two_scales_is_rounded_once(layout, rounding):
    chain = QuantizedChain(SHAPE)
    chain.residual(0.025, rounds_first=False)
    chain.activate(None)
    chain.quantize(0.05)
    layouts = {"x": layout, "residual": "channels_last", "y": layout}
    assert_like_definition(chain, map_integers, source(chain), layouts, rounding)


@pytest.mark.parametrize("zero_points", [(0, 0), (5, 0), (0, -7)])
@pytest.mark.parametrize("adds", [False, True])
def test_long_runs_in_another_scale_are_rounded_once(adds, zero_points):
    before, after = zero_points
    chain = QuantizedChain((1, 3, 31, 47), zero_point=before)
    if adds:
        chain.residual(0.025, rounds_first=False)
    chain.quantize(0.03, after)
    distances, scale, bias = source(chain)
    assert_like_definition(chain, map_integers, (distances - before, scale, bias))


def test_an_activation_between_two_roundings_is_kept():
    chain = QuantizedChain(SHAPE)
    chain.activate((-1.0, 2.5))
    chain.quantize(0.02)
    chain.dequantize()
    chain.activate(None)
    chain.quantize(0.013)
    assert_like_definition(chain, map_integers, source(chain))


def test_values_that_are_only_requantized_keep_their_bytes_at_the_same_scale():
    chain = QuantizedChain(SHAPE)
    chain.quantize(0.05)
    result = assert_like_definition(chain, map_integers, source(chain))
    np.testing.assert_array_equal(result, chain.feeds()["x"])


def test_each_part_of_a_concatenation_has_its_own_scale():
    chain = QuantizedChain((2, 20, 5, 9))
    other = chain.network.add_input("residual", DataType.INT8, (2, 7, 5, 9))
    real = chain.network.add_layer(Dequantize(), [other, chain.constant(np.array(0.11, np.float32))])
    chain.layers.append(real)
    chain.add(Concatenation(axis=1), [chain.value, real.get_output(0)])
    chain.quantize(0.07)
    steps, feeds = requantization_of(chain.group, RoundingMode.HALF_TO_EVEN), chain.feeds()
    parts = [
        requantized(feeds[name].astype(np.int32), in_units(np.array(scale), steps.unit), steps)
        for name, scale in (("x", float(np.float32(0.05))), ("residual", float(np.float32(0.11))))
    ]
    assert concatenate_integers.accepts(chain.group, chain.specs)
    actual = run_group(chain.network, chain.layers, feeds, kernel=concatenate_integers)
    np.testing.assert_array_equal(actual, np.concatenate(parts, axis=1))


@pytest.mark.parametrize("C", [16, 24, 64, 80, 130])
@pytest.mark.parametrize(
    ("window", "step", "side"),
    [((3, 3), (2, 2), 1), ((3, 3), (1, 1), 1), ((2, 2), (2, 2), 0), ((3, 2), (1, 2), 1), ((6, 5), (2, 3), 2)],
)
def test_a_maximum_of_bytes_is_exact_in_every_window_and_block(window, step, side, C):
    chain = QuantizedChain((2, C, 11, 14))
    sides = {"pre_padding": (side, side), "post_padding": (side, 0)}
    chain.add(Pooling(pooling_type=PoolingType.MAX, window_size_nd=window, stride_nd=step, **sides), [chain.value])
    chain.quantize(0.05)
    x = chain.feeds()["x"]
    padded = np.pad(x, ((0, 0), (0, 0), (side, side), (side, 0)), constant_values=-128)
    windows = np.lib.stride_tricks.sliding_window_view(padded, window, (2, 3))[:, :, :: step[0], :: step[1]]
    kernel = integer_pooling.pool_integers
    for threads in (1, 3):
        actual = run_group(chain.network, chain.layers, {"x": x}, kernel=kernel, threads=threads)
        np.testing.assert_array_equal(actual, windows.max(axis=(4, 5)))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("excludes_padding", [True, False])
@pytest.mark.parametrize(("C", "window", "step", "side"), [(80, (3, 3), (1, 1), 1), (17, (6, 5), (2, 3), 2)])
def test_an_average_of_bytes_counts_what_it_is_told_to(C, window, step, side, excludes_padding, layout):
    chain = QuantizedChain((2, C, 11, 14))
    layer = Pooling(
        pooling_type=PoolingType.AVERAGE,
        window_size_nd=window,
        stride_nd=step,
        pre_padding=(side, side),
        post_padding=(side, side),
        average_count_excludes_padding=excludes_padding,
    )
    chain.add(layer, [chain.value])
    chain.activate((-0.7, 0.9))
    chain.quantize(0.013)
    kernel, steps = integer_pooling.pool_integers, requantization_of(chain.group, RoundingMode.HALF_TO_EVEN)
    x = np.pad(chain.feeds()["x"].astype(np.float64), ((0, 0), (0, 0), (side, side), (side, side)))
    inside = np.pad(np.ones((11, 14)), side, constant_values=0.0 if excludes_padding else 1.0)
    sums, counts = (
        np.lib.stride_tricks.sliding_window_view(one, window, (-2, -1))[..., :: step[0], :: step[1], :, :].sum((-2, -1))
        for one in (x, inside)
    )
    values = sums.astype(np.float32) / counts.astype(np.float32)
    expected = requantized(values, in_units(np.array(float(np.float32(0.05))), steps.unit), steps)
    for threads in (1, 3):
        feeds = chain.feeds({"x": "channels_last"})
        actual = run_group(chain.network, chain.layers, feeds, kernel=kernel, layout=layout, threads=threads)
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("kind", [PoolingType.MAX, PoolingType.AVERAGE])
@pytest.mark.parametrize(("scale", "C"), [(0.05, 64), (0.05, 20), (0.031, 64)])
def test_a_pooling_is_exact_before_it_is_rounded(kind, scale, C):
    chain = QuantizedChain((2, C, 11, 14))
    layer = Pooling(pooling_type=kind, window_size_nd=(3, 3), stride_nd=(2, 2), pre_padding=(1, 1), post_padding=(0, 1))
    chain.add(layer, [chain.value])
    chain.quantize(scale)
    kernel, steps = integer_pooling.pool_integers, requantization_of(chain.group, RoundingMode.HALF_TO_EVEN)
    x = chain.feeds()["x"].astype(np.float64)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 0), (1, 1)), constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::2, ::2]
    if kind is PoolingType.MAX:
        values = np.nanmax(windows, axis=(4, 5)).astype(np.float32)
    else:
        values = np.nansum(windows, axis=(4, 5)).astype(np.float32)
        values = values / np.isfinite(windows).sum(axis=(4, 5)).astype(np.float32)
    expected = requantized(values, in_units(np.array(float(np.float32(0.05))), steps.unit), steps)
    np.testing.assert_array_equal(run_group(chain.network, chain.layers, chain.feeds(), kernel=kernel), expected)


def test_an_average_over_the_image_is_a_pooling():
    chain = QuantizedChain((2, 40, 7, 7))
    chain.add(Reduce(op=ReduceOperation.AVG, axes=0b1100, keep_dims=True), [chain.value])
    chain.quantize(0.01)
    kernel, steps = integer_pooling.pool_integer_images, requantization_of(chain.group, RoundingMode.HALF_TO_EVEN)
    sums = chain.feeds()["x"].astype(np.float32).sum(axis=(2, 3), keepdims=True)
    expected = requantized(sums / np.float32(49), in_units(np.array(float(np.float32(0.05))), steps.unit), steps)
    np.testing.assert_array_equal(run_group(chain.network, chain.layers, chain.feeds(), kernel=kernel), expected)


@pytest.mark.parametrize("is_real", [True, False])
@pytest.mark.parametrize("outputs", [1, 10, 70])
def test_a_fully_connected_layer_sums_over_the_image(outputs, is_real):
    chain = QuantizedChain((3, 12, 2, 3))
    weights, scales = random_bytes((outputs, 72)), np.linspace(0.001, 0.002, outputs).astype(np.float32)
    real = chain.network.add_layer(Dequantize(axis=0), [chain.constant(weights), chain.constant(scales)])
    chain.layers.append(real)
    whole = np.arange(outputs).astype(np.int32) * 97 - 3000
    bias = np.linspace(-1, 1, outputs).astype(np.float32) if is_real else whole * (scales * np.float32(0.05))
    chain.add(FullyConnected(num_output_channels=outputs, bias=bias), [chain.value, real.get_output(0)])
    chain.quantize(0.06)
    sums = chain.feeds()["x"].reshape(3, -1).astype(np.int64) @ weights.T.astype(np.int64)
    total = (sums if is_real else sums + whole).astype(np.int32)[..., None, None]
    scales = integer_weights(chain.group).scales[:, None, None]
    exact = total, scales, bias.astype(np.float64)[:, None, None] if is_real else None
    assert_like_definition(chain, convolution.connect_integers, exact)


@pytest.mark.parametrize("layout", ["linear", "strided"])
@pytest.mark.parametrize("op", [MatrixOperation.NONE, MatrixOperation.TRANSPOSE])
@pytest.mark.parametrize("shape", [(5, 70), (2, 3, 9, 20)])
def test_a_matrix_product_with_constant_weights_sums_over_rows(shape, op, layout):
    chain, N = QuantizedChain(shape), 40
    weights, scales = random_bytes((shape[-1], N)), np.linspace(0.001, 0.002, N).astype(np.float32)
    is_turned = op is MatrixOperation.TRANSPOSE
    given = np.ascontiguousarray(weights.T if is_turned else weights).reshape(
        [1] * (len(shape) - 2) + [-1, N][:: -1 if is_turned else 1]
    )
    real = chain.network.add_layer(
        Dequantize(axis=len(shape) - (2 if is_turned else 1)), [chain.constant(given), chain.constant(scales)]
    )
    chain.layers.append(real)
    chain.add(MatrixMultiply(op0=MatrixOperation.NONE, op1=op), [chain.value, real.get_output(0)])
    chain.residual(0.03, rounds_first=True)
    chain.quantize(0.06)
    sums = chain.feeds()["x"].astype(np.int64) @ weights.astype(np.int64)
    exact = sums.astype(np.int32), integer_weights(chain.group).scales, None
    layouts = dict.fromkeys(("x", "residual", "y"), layout)
    assert_like_definition(chain, integer_matrix_multiply.multiply_integers, exact, layouts)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("ends_quantized", [True, False])
@pytest.mark.parametrize("kind", [ActivationType.SIGMOID, ActivationType.TANH, ActivationType.ELU])
def test_a_function_of_quantized_values_gives_the_bits_of_its_layers(kind, ends_quantized, layout):
    chain = QuantizedChain((2, 20, 5, 9))
    chain.add(Activation(activation_type=kind, alpha=1.0), [chain.value])
    if ends_quantized:
        chain.quantize(1 / 127)
    feeds = chain.feeds({"x": layout})
    assert look_up.accepts(chain.group, chain.specs)
    expected = chain.layer_by_layer()
    for threads in (1, 3):
        actual = run_group(chain.network, chain.layers, feeds, kernel=look_up, layout="linear", threads=threads)
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("rounding", RoundingMode)
def test_a_table_rounds_as_the_device_does(rounding):
    chain = QuantizedChain((1, 1, 16, 16), scale=1.0)
    chain.add(Activation(activation_type=ActivationType.LEAKY_RELU, alpha=0.5), [chain.value])
    chain.quantize(2.0)
    codes = np.arange(256, dtype=np.uint8).view(np.int8).reshape(1, 1, 16, 16)
    halves = np.where(codes < 0, codes / 4, codes / 2)
    expected = round_values(halves.astype(np.float32), rounding)
    actual = run_group(chain.network, chain.layers, {**chain.feeds(), "x": codes}, kernel=look_up, rounding=rounding)
    np.testing.assert_array_equal(actual, expected.astype(np.int8))


def test_channels_whose_factors_are_dequantized_have_a_table_each():
    chain = QuantizedChain((1, 5, 3, 20))
    x, scale = chain.value, chain.constant(np.array(0.05, np.float32))
    factors = chain.constant(np.arange(-40, 60, 20, dtype=np.int8).reshape(1, 5, 1, 1))
    chain.add(Dequantize(), [factors, scale])
    chain.add(Elementwise(op=ElementWiseOperation.PROD), [x, chain.value])
    chain.quantize(0.1)
    assert look_up.accepts(chain.group, chain.specs)
    actual = run_group(chain.network, chain.layers, chain.feeds(), kernel=look_up, layout="linear")
    np.testing.assert_array_equal(actual, chain.layer_by_layer())


def test_a_sum_and_a_clip_are_no_functions_for_a_table():
    chain = QuantizedChain(SHAPE)
    chain.activate((-1.0, 2.5))
    chain.quantize(0.02)
    assert not look_up.accepts(chain.group, chain.specs)
    other = QuantizedChain(SHAPE)
    other.residual(0.025, rounds_first=False)
    assert not look_up.fuses(LayerGroup(other.layers[:-1]), other.layers[-1])
