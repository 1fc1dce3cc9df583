"""What combines two quantized tensors, folds after sums, or normalizes, with zero points: bit for bit as defined."""

from __future__ import annotations

import numpy as np
import pytest
from tests.targets.cpu.group_runner import LAYOUTS, run_group, specs_of
from tests.targets.cpu.kernels.integer_definition import normalized, requantized
from tests.targets.cpu.kernels.quantized_groups import QuantizedChain, assert_like_definition, exact_convolution

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import Activation, ActivationType, ParametricRelu, Scale, ScaleMode
from dryfit.network.layers.convolution import Convolution
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation, Unary, UnaryOperation
from dryfit.network.layers.matrix import MatrixMultiply, MatrixOperation
from dryfit.network.layers.movement import Concatenation
from dryfit.network.layers.normalization import Softmax
from dryfit.network.layers.quantization import Dequantize
from dryfit.network.layers.reduction import Reduce, ReduceOperation
from dryfit.network.layers.resize import InterpolationMode, Resize, ResizeCoordinateTransformation
from dryfit.network.layers.window_layer import Pooling, PoolingType
from dryfit.network.network import Network
from dryfit.quantization.rounding import RoundingMode, round_values
from dryfit.target.group import LayerGroup
from dryfit_cpu.kernels import integer_pooling
from dryfit_cpu.kernels.convolution import convolve_integers
from dryfit_cpu.kernels.integer_depthwise import convolve_integer_channels
from dryfit_cpu.kernels.integer_matrix_multiply import multiply_matrices
from dryfit_cpu.kernels.integer_pointwise import concatenate_integers, look_up, map_integers
from dryfit_cpu.kernels.operands import ImageOperand
from dryfit_cpu.kernels.requantization import in_units, requantization_of
from dryfit_cpu.kernels.resize import axis_tables, resize_integers
from dryfit_cpu.kernels.softmax import exponentials, normalize_integers

SHAPE = (2, 20, 5, 9)
SCALE = float(np.float32(0.05))
OPERATIONS = [
    ElementWiseOperation.SUM,
    ElementWiseOperation.SUB,
    ElementWiseOperation.PROD,
    ElementWiseOperation.MAX,
    ElementWiseOperation.MIN,
]


def distances(chain, zero_point=0):
    """The first input's distances from its zero point as sums, and their scale."""
    return chain.feeds()["x"].astype(np.int32) - zero_point, np.array(SCALE), None


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("zero_points", [(0, 0, 0), (-128, 5, 17)])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_on_two_tensors_is_rounded_once(operation, zero_points, layout):
    chain = QuantizedChain(SHAPE, zero_point=zero_points[0])
    chain.residual(0.023, rounds_first=False, operation=operation, zero_point=zero_points[1])
    chain.activate((-2.0, 3.5))
    chain.quantize(0.047, zero_points[2])
    layouts = {"x": layout, "residual": "channels_last", "y": layout}
    result = assert_like_definition(chain, map_integers, distances(chain, zero_points[0]), layouts)
    by_layers = chain.layer_by_layer().astype(np.int32)
    assert np.abs(result - by_layers).max() <= 1
    assert (result != by_layers).mean() < 0.03


@pytest.mark.parametrize("shape", [(2, 20, 1, 1), (1, 1, 5, 9), (1, 1, 1, 9)])
def test_the_other_operand_of_a_product_may_be_repeated(shape):
    chain = QuantizedChain(SHAPE)
    chain.residual(0.025, rounds_first=False, operation=ElementWiseOperation.PROD, shape=shape)
    chain.quantize(0.05)
    feeds = chain.feeds()
    steps = requantization_of(chain.group)
    spread = np.broadcast_to(feeds["residual"], SHAPE)
    expected = requantized(feeds["x"].astype(np.int32), in_units(np.array(SCALE), steps.unit), steps, spread)
    np.testing.assert_array_equal(run_group(chain.network, chain.layers, feeds, kernel=map_integers), expected)


@pytest.mark.parametrize("rounding", RoundingMode)
def test_values_move_to_another_zero_point(rounding):
    chain = QuantizedChain(SHAPE, zero_point=-128)
    chain.quantize(0.1, 3)
    assert_like_definition(chain, map_integers, distances(chain, -128), rounding)


def test_a_second_rounding_keeps_its_zero_point():
    chain = QuantizedChain(SHAPE, zero_point=11)
    chain.quantize(0.03, -4)
    chain.dequantize()
    chain.activate(None)
    chain.quantize(0.011, -128)
    assert_like_definition(chain, map_integers, distances(chain, 11))


def test_each_part_of_a_concatenation_has_its_own_zero_point():
    chain = QuantizedChain((2, 20, 5, 9), zero_point=-3)
    other = chain.network.add_input("residual", DataType.INT8, (2, 7, 5, 9))
    real = chain.network.add_layer(Dequantize(), [other, *chain.grid(0.11, 90)])
    chain.layers.append(real)
    chain.add(Concatenation(axis=1), [chain.value, real.get_output(0)])
    chain.quantize(0.07, 2)
    steps, feeds = requantization_of(chain.group), chain.feeds()
    parts = [
        requantized(feeds[name].astype(np.int32) - zero, in_units(np.array(scale), steps.unit), steps)
        for name, scale, zero in (("x", SCALE, -3), ("residual", float(np.float32(0.11)), 90))
    ]
    actual = run_group(chain.network, chain.layers, feeds, kernel=concatenate_integers)
    np.testing.assert_array_equal(actual, np.concatenate(parts, axis=1))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("C", [64, 20])
@pytest.mark.parametrize("kind", [PoolingType.MAX, PoolingType.AVERAGE])
def test_a_pooling_takes_distances_from_the_zero_point(kind, C, layout):
    chain = QuantizedChain((2, C, 11, 14), zero_point=-7)
    sides = {"pre_padding": (1, 1), "post_padding": (0, 1), "average_count_excludes_padding": False}
    chain.add(Pooling(pooling_type=kind, window_size_nd=(3, 3), stride_nd=(2, 2), **sides), [chain.value])
    chain.quantize(0.031, 12)
    steps, x = requantization_of(chain.group), chain.feeds()["x"].astype(np.float64) + 7
    padded = np.pad(x, ((0, 0), (0, 0), (1, 0), (1, 1)), constant_values=-np.inf if kind is PoolingType.MAX else 0)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::2, ::2]
    values = windows.max(axis=(4, 5)) if kind is PoolingType.MAX else windows.sum(axis=(4, 5)) / 9
    expected = requantized(values.astype(np.float32), in_units(np.array(SCALE), steps.unit), steps)
    feeds = chain.feeds({"x": layout})
    actual = run_group(chain.network, chain.layers, feeds, kernel=integer_pooling.pool_integers, layout=layout)
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("scale", [SCALE, 0.031])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_maximum_over_padding_alone_is_the_lowest_value(scale, threads):
    chain = QuantizedChain((1, 64, 2, 9), zero_point=-7)
    sides = {"pre_padding": (1, 0), "post_padding": (1, 0), "dilation_nd": (3, 1)}
    chain.add(Pooling(pooling_type=PoolingType.MAX, window_size_nd=(2, 2), stride_nd=(1, 1), **sides), [chain.value])
    chain.quantize(scale, 12)
    feeds = chain.feeds({"x": "channels_last"})
    kernel = integer_pooling.pool_integers
    actual = run_group(chain.network, chain.layers, feeds, kernel=kernel, layout="channels_last", threads=threads)
    assert actual.shape == (1, 64, 1, 8)
    assert (actual == -128).all()


@pytest.mark.parametrize("kind", [PoolingType.MAX, PoolingType.AVERAGE])
@pytest.mark.parametrize("layout", ["linear", "channels_last"])
def test_a_pooling_of_volumes_takes_distances_from_the_zero_point(kind, layout):
    chain = QuantizedChain((2, 70, 5, 6, 7), zero_point=-7)
    sides = {"pre_padding": (1, 0, 1), "post_padding": (0, 0, 1), "average_count_excludes_padding": False}
    chain.add(Pooling(pooling_type=kind, window_size_nd=(2, 3, 3), stride_nd=(2, 1, 2), **sides), [chain.value])
    chain.quantize(0.031, 12)
    steps, x = requantization_of(chain.group), chain.feeds()["x"].astype(np.float64) + 7
    around = ((0, 0), (0, 0), (1, 0), (0, 0), (1, 1))
    padded = np.pad(x, around, constant_values=-np.inf if kind is PoolingType.MAX else 0)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (2, 3, 3), (2, 3, 4))[:, :, ::2, :, ::2]
    axes = (5, 6, 7)
    values = windows.max(axis=axes) if kind is PoolingType.MAX else windows.sum(axis=axes) / 18
    expected = requantized(values.astype(np.float32), in_units(np.array(SCALE), steps.unit), steps)
    feeds = chain.feeds({"x": layout})
    actual = run_group(chain.network, chain.layers, feeds, kernel=integer_pooling.pool_integers, layout=layout)
    np.testing.assert_array_equal(actual, expected)


def test_an_average_over_the_image_has_zero_points():
    chain = QuantizedChain((2, 40, 7, 7), zero_point=-128)
    chain.add(Reduce(op=ReduceOperation.AVG, axes=0b1100, keep_dims=True), [chain.value])
    chain.quantize(0.03, -128)
    steps = requantization_of(chain.group)
    sums = (chain.feeds()["x"].astype(np.float32) + 128).sum(axis=(2, 3), keepdims=True)
    expected = requantized(sums / np.float32(49), in_units(np.array(SCALE), steps.unit), steps)
    actual = run_group(chain.network, chain.layers, chain.feeds(), kernel=integer_pooling.pool_integer_images)
    np.testing.assert_array_equal(actual, expected)


# What folds into sums -------------------------------------------------------------------------------------------------


def normalization(channels):
    """A batch normalization, with a factor of 0 and negative ones."""
    generator = np.random.default_rng(9)
    factor, shift = (generator.standard_normal(channels).astype(np.float32) for _ in range(2))
    factor[0] = 0.0
    return Scale(mode=ScaleMode.CHANNEL, scale=factor, shift=shift), factor, shift


@pytest.mark.parametrize("bias", [None, "real", "whole"])
@pytest.mark.parametrize("groups", [1, 24])
def test_a_normalization_after_a_convolution_scales_its_sums_before_the_activation(groups, bias):
    generator = np.random.default_rng(4)
    chain, C = QuantizedChain((1, 24, 6, 7), zero_point=9), 24
    weights = generator.integers(-127, 128, (C, C // groups, 3, 3)).astype(np.int8)
    scales = generator.uniform(0.5, 1.5, C).astype(np.float32) / np.float32(30 * np.sqrt(weights[0].size))
    offsets = generator.standard_normal(C).astype(np.float32) if bias else None
    if bias == "whole":
        offsets = np.rint(offsets / scales / np.float32(0.05)).astype(np.int32)
    chain.convolve(weights, scales, offsets, num_groups=groups, pre_padding=(1, 1))
    scale, factor, shift = normalization(C)
    chain.add(scale, [chain.value])
    chain.activate(None)
    chain.quantize(0.02)
    sums, _, _ = exact_convolution(chain)
    wide = factor.astype(np.float64)
    added = shift + (offsets.astype(np.float64) * wide if bias == "real" else 0.0)
    exact = [(scales.astype(np.float64) * SCALE) * wide, added]
    kernel = convolve_integers if groups == 1 else convolve_integer_channels
    exact = (sums, *(values[:, None, None] for values in exact))
    result = assert_like_definition(chain, kernel, exact)
    assert (result == chain.layer_by_layer()).mean() > 0.99


@pytest.mark.parametrize("dtype", [DataType.HALF, DataType.BF16])
@pytest.mark.parametrize("ends_quantized", [True, False])
def test_real_numbers_between_quantized_ones_may_be_narrow(dtype, ends_quantized):
    generator, network = np.random.default_rng(2), Network()
    values = generator.integers(-127, 128, (24, 16, 3, 3)).astype(np.int8)
    x = network.add_input("x", DataType.INT8, (1, 16, 6, 7))

    def constant(array):
        return network.add_constant(array.shape, array).get_output(0)

    scales = [constant(np.array(scale, dtype.numpy)) for scale in (0.05, 0.003, 0.25)]
    reals = [
        network.add_layer(Dequantize(to_type=dtype), [tensor, scale])
        for tensor, scale in zip((x, constant(values)), scales[:2], strict=True)
    ]
    layer = Convolution(num_output_maps=24, kernel_size_nd=(3, 3))
    layers = [*reals, network.add_layer(layer, [real.get_output(0) for real in reals])]
    if ends_quantized:
        layers.append(network.add_quantize(layers[-1].get_output(0), scales[2]))
    steps, codes = requantization_of(LayerGroup(layers)), generator.integers(-128, 128, x.shape).astype(np.int8)
    windows = np.lib.stride_tricks.sliding_window_view(codes.astype(np.int64), (3, 3), (2, 3))
    sums = np.einsum("nchwyx,kcyx->nkhw", windows, values.astype(np.int64)).astype(np.int32)
    first, second = (float(scale.spec.value) for scale in scales[:2])
    expected = requantized(sums, in_units(np.array(first * second), steps.unit), steps)
    assert convolve_integers.accepts(LayerGroup(layers), specs_of(network))
    actual = run_group(network, layers, {"x": codes}, kernel=convolve_integers)
    np.testing.assert_array_equal(actual, expected.astype(actual.dtype))
    assert actual.dtype == (np.int8 if ends_quantized else dtype.numpy)


# Functions ------------------------------------------------------------------------------------------------------------


def assert_bits_of_layers(chain, layout="channels_last"):
    assert look_up.accepts(chain.group, chain.specs)
    expected, feeds = chain.layer_by_layer(), chain.feeds({"x": layout})
    for threads in (1, 3):
        actual = run_group(chain.network, chain.layers, feeds, kernel=look_up, layout=layout, threads=threads)
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("zero_point", [0, 21])
def test_silu_is_one_table_though_it_reads_its_input_twice(layout, zero_point):
    chain = QuantizedChain(SHAPE, zero_point=zero_point)
    x = chain.value
    chain.add(Activation(activation_type=ActivationType.SIGMOID), [x])
    chain.add(Elementwise(op=ElementWiseOperation.PROD), [x, chain.value])
    chain.quantize(0.04, -zero_point)
    assert_bits_of_layers(chain, layout)


def test_a_hard_swish_of_known_numbers_is_one_table():
    chain = QuantizedChain(SHAPE)
    x = chain.value

    def number(value):
        return chain.constant(np.full((1, 1, 1, 1), value, np.float32))

    chain.add(Elementwise(op=ElementWiseOperation.SUM), [x, number(3.0)])
    assert not map_integers.accepts(chain.group, chain.specs)
    chain.activate((0.0, 6.0))
    chain.add(Elementwise(op=ElementWiseOperation.PROD), [chain.value, x])
    chain.add(Elementwise(op=ElementWiseOperation.DIV), [chain.value, number(6.0)])
    chain.quantize(0.03)
    assert_bits_of_layers(chain)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("slopes", [20, 1])
def test_a_parametric_relu_has_a_table_for_each_channel(slopes, layout):
    chain = QuantizedChain(SHAPE)
    values = np.linspace(-1, 2, slopes).astype(np.float32).reshape(1, slopes, 1, 1)
    chain.add(ParametricRelu(), [chain.value, chain.constant(values)])
    chain.quantize(0.03, 4)
    assert_bits_of_layers(chain, layout)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_normalization_alone_has_a_table_for_each_channel(layout):
    chain = QuantizedChain(SHAPE)
    chain.add(normalization(20)[0], [chain.value])
    chain.activate(None)
    chain.quantize(0.03)
    assert_bits_of_layers(chain, layout)


def test_a_function_without_a_vector_form_has_a_table():
    chain = QuantizedChain(SHAPE)
    chain.add(Unary(op=UnaryOperation.COS), [chain.value])
    chain.quantize(0.01)
    assert_bits_of_layers(chain)


def test_numbers_that_differ_along_two_axes_make_no_table():
    chain = QuantizedChain(SHAPE)
    slopes = np.ones((1, 20, 1, 9), np.float32)
    chain.add(ParametricRelu(), [chain.value, chain.constant(slopes)])
    chain.quantize(0.03)
    assert not look_up.accepts(chain.group, chain.specs)


# Products of two tensors ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["linear", "strided"])
@pytest.mark.parametrize("turned", [(False, False), (True, True), (False, True)])
@pytest.mark.parametrize(("batches", "zero_point"), [(((2, 3), (2, 3)), 0), (((2, 1), (1, 3)), -128), (((), ()), 5)])
def test_a_product_of_two_tensors_is_exact(batches, zero_point, turned, layout):
    m, k, n = 13, 37, 40
    shapes = [
        (*batches[0], k, m) if turned[0] else (*batches[0], m, k),
        (*batches[1], n, k) if turned[1] else (*batches[1], k, n),
    ]
    chain = QuantizedChain(shapes[0], zero_point=zero_point)
    other = chain.network.add_input("y_", DataType.INT8, shapes[1])
    real = chain.network.add_layer(Dequantize(), [other, *chain.grid(0.03)])
    chain.layers.append(real)
    operations = [MatrixOperation.TRANSPOSE if one else MatrixOperation.NONE for one in turned]
    chain.add(MatrixMultiply(op0=operations[0], op1=operations[1]), [chain.value, real.get_output(0)])
    chain.activate((-9.0, 11.0))
    chain.quantize(0.3, 3)
    feeds = chain.feeds({"x": layout, "y_": layout})
    a, b = (feeds[name].astype(np.int64) for name in ("x", "y_"))
    a, b = (one.swapaxes(-1, -2) if is_turned else one for one, is_turned in zip((a, b), turned, strict=True))
    steps, scale = requantization_of(chain.group), SCALE * float(np.float32(0.03))
    expected = requantized(((a - zero_point) @ b).astype(np.int32), in_units(np.array(scale), steps.unit), steps)
    assert multiply_matrices.accepts(chain.group, chain.specs)
    for threads in (1, 3):
        actual = run_group(chain.network, chain.layers, feeds, kernel=multiply_matrices, layout=layout, threads=threads)
        np.testing.assert_array_equal(actual, expected)


# Resizing -------------------------------------------------------------------------------------------------------------


def resized(codes, layer, zero_point, steps):
    """The definition: rows, then columns, in FP32, each step one operation; the weights are those of the tables."""
    image = codes.astype(np.float32)
    operand, output = ImageOperand.of(codes), ImageOperand.of(np.zeros(layer.shape, np.int8))
    (rows, row_weights), (columns, column_weights) = (axis_tables(layer, operand, output, axis) for axis in (2, 3))
    rows, columns = rows // codes.strides[2], columns // codes.strides[3]
    if layer.resize_mode is InterpolationMode.NEAREST:
        x = image[:, :, rows[:, 0]][..., columns[:, 0]]
    else:
        upper, lower = row_weights[:, :1], row_weights[:, 1:]
        down = image[:, :, rows[:, 0]] * upper + image[:, :, rows[:, 1]] * lower
        x = down[..., columns[:, 0]] * column_weights[:, 0] + down[..., columns[:, 1]] * column_weights[:, 1]
    return requantized_reals(x - np.float32(zero_point), steps)


def requantized_reals(x, steps):
    """Real numbers in units of the input, scaled, limited and rounded."""
    x = x * in_units(np.array(SCALE), steps.unit)
    low, high = (np.float32(limit) for limit in steps.limits)
    return (round_values(np.minimum(np.maximum(x, low), high), steps.rounding) + steps.zero_point).astype(np.int8)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("zero_points", [(0, 0), (-128, 40)])
@pytest.mark.parametrize("mode", [InterpolationMode.NEAREST, InterpolationMode.LINEAR])
@pytest.mark.parametrize("kind", [ResizeCoordinateTransformation.HALF_PIXEL, ResizeCoordinateTransformation.ASYMMETRIC])
def test_a_resize_is_sampled_in_fp32_and_rounded_once(kind, mode, zero_points, layout):
    chain = QuantizedChain((2, 20, 5, 9), zero_point=zero_points[0])
    layer = Resize(shape=(2, 20, 11, 7), resize_mode=mode, coordinate_transformation=kind)
    chain.add(layer, [chain.value])
    chain.quantize(0.037, zero_points[1])
    feeds, steps = chain.feeds({"x": layout}), requantization_of(chain.group)
    assert resize_integers.accepts(chain.group, chain.specs)
    expected = resized(feeds["x"], layer, zero_points[0], steps)
    for threads in (1, 3):
        actual = run_group(chain.network, chain.layers, feeds, kernel=resize_integers, layout=layout, threads=threads)
        np.testing.assert_array_equal(actual, expected)
    assert np.abs(expected.astype(np.int32) - chain.layer_by_layer()).max() <= 1


# Softmax --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("axis", [1, 3])
@pytest.mark.parametrize("zero_point", [0, -128])
def test_a_softmax_equals_its_definition(axis, zero_point, layout):
    chain = QuantizedChain((2, 37, 3, 9))
    chain.add(Softmax(axes=1 << axis), [chain.value])
    chain.quantize(1 / 256, zero_point)
    feeds, steps = chain.feeds({"x": layout}), requantization_of(chain.group)
    assert normalize_integers.accepts(chain.group, chain.specs)
    expected = normalized(feeds["x"], axis, exponentials(SCALE), steps)
    for threads in (1, 3):
        actual = run_group(
            chain.network, chain.layers, feeds, kernel=normalize_integers, layout=layout, threads=threads
        )
        np.testing.assert_array_equal(actual, expected)
    assert np.abs(expected.astype(np.int32) - chain.layer_by_layer()).max() <= 1


def test_a_softmax_over_many_values_sums_exactly():
    chain = QuantizedChain((1, 100_000))
    chain.fill = 3
    chain.add(Softmax(axes=2), [chain.value])
    chain.quantize(1e-5 / 100)
    steps = requantization_of(chain.group)
    expected = normalized(chain.feeds()["x"], 1, exponentials(SCALE), steps)
    assert (expected == 100).all()
    np.testing.assert_array_equal(
        run_group(chain.network, chain.layers, chain.feeds(), kernel=normalize_integers), expected
    )
