"""Products with weights that stay narrow, against the layers one by one: the same bits, in all forms and types."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from tests.targets.cpu.group_runner import LAYOUTS, Guarded, assert_close, reference_kernel, run_group, specs_of

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import Activation, ActivationType
from dryfit.network.layers.convolution import Convolution, FullyConnected
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation
from dryfit.network.layers.generators import Constant
from dryfit.network.layers.matrix import MatrixMultiply, MatrixOperation
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.network import Network
from dryfit.target.group import LayerGroup
from dryfit_cpu.kernels.matrix_multiply import multiply
from dryfit_cpu.kernels.narrow_matrix_multiply import convolve_by_narrow_weights, multiply_by_narrow_weights

INT4, INT8, FP4, FP8 = ml_dtypes.int4, np.dtype(np.int8), ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn
BF16 = ml_dtypes.bfloat16


class Case:
    """A network under construction, with the arrays of its constants and inputs."""

    def __init__(self, seed=0):
        self.network, self.feeds, self.layers = Network(), {}, []
        self.generator = np.random.default_rng(seed)

    def constant(self, values):
        tensor = self.network.add_layer(Constant(shape=values.shape, weights=values), []).outputs[0]
        self.feeds[tensor.name] = values
        return tensor

    def input(self, values, layout="linear"):
        tensor = self.network.add_input(f"x{len(self.feeds)}", DataType.from_numpy(values.dtype), values.shape)
        self.feeds[tensor.name] = Guarded.new(values.shape, values.dtype, layout).array
        self.feeds[tensor.name][...] = values
        return tensor

    def add(self, layer, *inputs):
        self.layers.append(self.network.add_layer(layer, inputs))
        return self.layers[-1].outputs[0]

    def numbers(self, *shape, dtype=np.float32):
        return self.generator.standard_normal(shape).astype(dtype)

    def scales(self, *shape, dtype=np.float32):
        return self.generator.uniform(0.01, 0.02, shape).astype(dtype)

    def codes(self, dtype, *shape):
        """All codes of a type but NaN."""
        codes = self.generator.integers(0, 2 ** DataType.from_numpy(dtype).bits, shape).astype(np.uint8)
        return np.where(codes & 0x7F == 0x7F, 0, codes).astype(np.uint8).view(dtype)

    def run(self, kernel, layout="linear", threads=1):
        return run_group(self.network, self.layers, self.feeds, kernel=kernel, layout=layout, threads=threads)


def plain_product(x, weights):
    """`x @ weights` by the kernel for FP32."""
    case = Case()
    case.add(MatrixMultiply(), case.input(x), case.constant(weights))
    return case.run(multiply)


def spread(scale, shape, axis):
    """Scales repeated over the blocks of an axis."""
    return np.broadcast_to(np.repeat(scale, shape[axis] // scale.shape[axis], axis=axis), shape)


@pytest.mark.parametrize("scale_type", [np.float32, np.float16, BF16])
@pytest.mark.parametrize(
    ("dtype", "rows", "depth", "columns", "blocks"),
    [
        (INT4, 1, 256, 64, 8),
        (INT4, 4, 100, 40, 1),
        (INT4, 16, 320, 33, 10),
        (FP4, 1, 48, 70, 3),
        (FP4, 37, 512, 32, 32),
        # Rows 8 KiB apart share sets of the cache, and are copied apart.
        (INT4, 5, 2048, 160, 16),
        (INT8, 3, 60, 100, 3),
        (INT8, 20, 61, 7, 1),
        (FP8, 2, 77, 64, 1),
        (FP8, 240, 260, 50, 65),
    ],
)
def test_a_result_is_that_of_dequantizing_and_then_multiplying_bit_for_bit(
    dtype, rows, depth, columns, blocks, scale_type
):
    case = Case()
    x, codes, scales = (
        case.numbers(rows, depth),
        case.codes(dtype, depth, columns),
        case.scales(blocks, columns, dtype=scale_type),
    )
    weights = case.add(Dequantize(), case.constant(codes), case.constant(scales))
    case.add(MatrixMultiply(), case.input(x), weights)
    actual = case.run(multiply_by_narrow_weights)
    np.testing.assert_array_equal(case.run(multiply_by_narrow_weights, threads=3), actual)
    dequantized = codes.astype(np.float32) * spread(scales.astype(np.float32), codes.shape, 0)
    np.testing.assert_array_equal(actual, plain_product(x, dequantized))
    exact = x.astype(np.float64) @ dequantized
    bound = (depth + 1) * 2.0**-24 * (np.abs(x).astype(np.float64) @ np.abs(dequantized))
    assert (np.abs(actual - exact) <= bound).all()


@pytest.mark.parametrize("layout", ["linear", "strided"])
@pytest.mark.parametrize("dtype", [np.float16, BF16, np.float32])
def test_bias_residual_and_activation_follow_the_product_in_the_activations_type(dtype, layout):
    case, kind = Case(), DataType.from_numpy(dtype)
    # Powers of two: what is dequantized to FP16 or BF16 loses nothing, so that the layers one by one are an oracle.
    codes, scales = case.codes(INT4, 1, 24, 96), np.exp2(case.generator.integers(-7, -3, (1, 24, 6))).astype(dtype)
    x, bias = case.numbers(2, 5, 96, dtype=dtype), case.numbers(1, 1, 24, dtype=dtype)
    weights = case.add(Dequantize(to_type=kind), case.constant(codes), case.constant(scales))
    product = case.add(MatrixMultiply(op1=MatrixOperation.TRANSPOSE), case.input(x, layout), weights)
    total = case.add(Elementwise(op=ElementWiseOperation.SUM), product, case.constant(bias))
    total = case.add(Activation(activation_type=ActivationType.RELU), total)
    other = case.input(case.numbers(2, 5, 24, dtype=dtype), layout)
    total = case.add(Elementwise(op=ElementWiseOperation.SUM), total, other)
    case.add(Activation(activation_type=ActivationType.GELU_TANH), total)
    actual = case.run(multiply_by_narrow_weights, layout)
    assert_close(actual, case.run(reference_kernel(), layout), 2e-5)


def test_a_fully_connected_layer_has_its_weights_by_outputs():
    case = Case()
    weights = case.add(Dequantize(axis=0), case.constant(case.codes(FP8, 40, 64)), case.constant(case.scales(40)))
    layer = FullyConnected(num_output_channels=40, bias=case.numbers(40))
    case.add(layer, case.input(case.numbers(3, 64, 1, 1)), weights)
    assert_close(case.run(multiply_by_narrow_weights), case.run(reference_kernel()), 2e-5)


def doubly_quantized(case, codes, scales, outer):
    """What two dequantize layers make of codes whose scales are FP8."""
    wide = case.add(Dequantize(), scales, case.constant(np.array(outer, np.float32)))
    return case.add(Dequantize(), codes, wide)


@pytest.mark.parametrize("rows", [1, 33])
def test_both_sides_may_be_quantized_twice(rows):
    case = Case()
    codes, scales = case.codes(FP4, rows, 96), case.scales(rows, 6, dtype=FP8)
    x = doubly_quantized(case, case.input(codes), case.input(scales), 0.37)
    columns, column_scales = case.codes(FP4, 48, 96), case.scales(48, 6, dtype=FP8)
    weights = doubly_quantized(case, case.constant(columns), case.constant(column_scales), 0.021)
    case.add(MatrixMultiply(op1=MatrixOperation.TRANSPOSE), x, weights)
    group = LayerGroup(case.layers)
    assert multiply_by_narrow_weights.accepts(group, specs_of(case.network))
    assert multiply_by_narrow_weights.pack(group)["scales"].dtype == FP8
    real = codes.astype(np.float32) * spread(scales.astype(np.float32) * np.float32(0.37), codes.shape, 1)
    wide = column_scales.astype(np.float32) * np.float32(0.021)
    expected = plain_product(real, (columns.astype(np.float32) * spread(wide, columns.shape, 1)).T.copy())
    np.testing.assert_array_equal(case.run(multiply_by_narrow_weights), expected)
    np.testing.assert_array_equal(case.run(multiply_by_narrow_weights, threads=3), expected)


def assert_codes_beside(actual, expected):
    """FP8 results are equal, or beside each other where a sum lies near a tie: at most one of a hundred."""
    mine, theirs = (one.astype(np.float32) for one in (actual, expected))
    apart = mine != theirs
    assert apart.mean() <= 0.01
    np.testing.assert_allclose(mine[apart], theirs[apart], rtol=0.13, atol=2.0**-8)


def test_fp8_products_may_end_quantized():
    case = Case()
    x = case.input(case.numbers(17, 128).astype(FP8))
    real = case.add(Dequantize(), x, case.constant(np.array(0.05, np.float32)))
    weights = case.add(Dequantize(axis=1), case.constant(case.codes(FP8, 128, 72)), case.constant(case.scales(72)))
    product = case.add(MatrixMultiply(), real, weights)
    case.add(Quantize(to_type=DataType.FP8), product, case.constant(np.array(0.1, np.float32)))
    assert_codes_beside(case.run(multiply_by_narrow_weights), case.run(reference_kernel()))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("image", "kernel", "settings"),
    [
        ((1, 16, 9, 20), (3, 3), {"pre_padding": (1, 1), "post_padding": (1, 1)}),
        ((2, 5, 8, 17), (3, 2), {"stride_nd": (2, 1)}),
        ((1, 40, 6, 6), (1, 1), {}),
        ((3, 8, 5, 4), (3, 3), {"pre_padding": (1, 1), "post_padding": (1, 1), "dilation_nd": (2, 2)}),
        ((1, 6, 12, 5), (3, 3), {}),
    ],
)
def test_fp8_images_are_convolved_with_fp8_weights(image, kernel, settings, layout):
    case = Case()
    x = case.input(case.numbers(*image).astype(FP8), layout)
    real = case.add(Dequantize(), x, case.constant(np.array(0.05, np.float32)))
    codes, scales = case.codes(FP8, 36, image[1], *kernel), case.scales(36)
    weights = case.add(Dequantize(axis=0), case.constant(codes), case.constant(scales))
    layer = Convolution(num_output_maps=36, kernel_size_nd=kernel, bias=case.numbers(36), **settings)
    y = case.add(layer, real, weights)
    y = case.add(Activation(activation_type=ActivationType.RELU), y)
    assert_close(case.run(convolve_by_narrow_weights, layout), case.run(reference_kernel(), layout), 1e-4)
    case.add(Quantize(to_type=DataType.FP8), y, case.constant(np.array(0.07, np.float32)))
    actual = case.run(convolve_by_narrow_weights, layout)
    assert_codes_beside(actual, case.run(reference_kernel(), layout))
    again = case.run(convolve_by_narrow_weights, layout, threads=3)
    np.testing.assert_array_equal(actual.view(np.uint8), again.view(np.uint8))


@pytest.mark.parametrize(
    ("codes", "scales", "settings"),
    [
        ((64, 32), (64, 2), {}),
        ((64, 32), (64,), {"axis": 0}),
        ((64, 32), (16, 32), {}),
    ],
)
def test_other_granularities_are_left_to_the_dequantize_layer(codes, scales, settings):
    case = Case()
    made = case.constant(case.codes(INT4, *codes)), case.constant(case.scales(*scales))
    case.add(MatrixMultiply(), case.input(case.numbers(2, 64)), case.add(Dequantize(**settings), *made))
    assert not multiply_by_narrow_weights.accepts(LayerGroup(case.layers), specs_of(case.network))


def test_int8_by_int8_is_left_to_the_integer_kernels():
    case = Case()
    one = case.constant(np.array(0.5, np.float32))
    x = case.add(Dequantize(), case.input(case.codes(INT8, 2, 64)), one)
    weights = case.add(Dequantize(), case.constant(case.codes(INT8, 64, 32)), one)
    case.add(MatrixMultiply(), x, weights)
    assert not multiply_by_narrow_weights.accepts(LayerGroup(case.layers), specs_of(case.network))


def test_what_is_dequantized_with_a_zero_point_is_left_to_others():
    case = Case()
    one, zero = case.constant(np.array(0.5, np.float32)), case.constant(np.array(3, np.int8))
    x = case.add(Dequantize(), case.input(case.codes(INT8, 2, 64)), one, zero)
    weights = case.add(Dequantize(), case.constant(case.codes(INT4, 64, 32)), one)
    case.add(MatrixMultiply(), x, weights)
    assert not multiply_by_narrow_weights.accepts(LayerGroup(case.layers), specs_of(case.network))
