"""Kernels of quantized operators against the definitions of their methods in numpy, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.targets.cpu.group_runner import LAYOUTS, chosen_kernel
from tests.targets.cpu.kernels.quantized_operators import (
    WINDOW,
    assert_like_method,
    operator_of_codes,
    weighted_operator,
)

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.optimization_profile import OptimizationProfile
from dryfit.building import Builder

METHODS = ("tflite", "tflite-2.14", "tflite-xnnpack", "onnx", "gpu", "dla-8")
"""Two steps, one step, FP32 with ties to even, away from zero; FP64 is in the inner product of tflite."""
SAME = {**WINDOW, "pre_padding": (1, 1), "post_padding": (1, 1)}


def random_weights(shape, seed=0):
    return np.random.default_rng(seed).integers(-127, 128, shape).astype(np.int8)


def ties(channels, scale, output_scale, input_scale=0.02):
    """INT32 biases that stand, in units of the output, next to halves: what rounding rules differ in."""
    multiplier = np.float64(input_scale) * scale / output_scale
    halves = np.resize(np.arange(-131, 132) + 0.5, channels)
    return (np.rint(halves / multiplier) + np.resize([0, 1, -1], channels)).astype(np.int32)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_biases_at_ties_are_rounded_as_the_method_says(method, dtype):
    K, scale = 800, 2.0**-7
    weights, bias = random_weights((K, 4, 1, 1)), ties(K, scale, 0.04)
    network = weighted_operator(
        "convolution", method, (1, 4, 1, 2), weights.astype(np.int8), bias,
        {"num_output_maps": K, "kernel_size_nd": (1, 1), **WINDOW}, dtype=dtype, scales=scale, output_scale=0.04,
    )  # fmt: skip
    zero = np.full((1, 4, 1, 2), 3 if dtype == "int8" else 131, dtype)
    assert_like_method(network, "cpu.quantized_convolution", {"x": zero})


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_convolution_with_a_scale_a_channel_and_limits_is_the_methods(method, layout):
    scales = np.linspace(0.001, 0.01, 40, dtype=np.float32)
    network = weighted_operator(
        "convolution", method, (2, 20, 7, 9), random_weights((40, 20, 3, 3)), np.arange(-20, 20, dtype=np.int32) * 99,
        {"num_output_maps": 40, "kernel_size_nd": (3, 3), **SAME}, scales=scales, limits=(0.0, 6.0),
    )  # fmt: skip
    assert_like_method(network, "cpu.quantized_convolution", layout=layout)


@pytest.mark.parametrize("method", [name for name in METHODS if name != "tflite-2.5"])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_a_depthwise_convolution_is_the_methods(method, dtype):
    network = weighted_operator(
        "convolution", method, (2, 20, 7, 9), random_weights((20, 1, 3, 3)), np.arange(-10, 10, dtype=np.int32) * 99,
        {"num_output_maps": 20, "kernel_size_nd": (3, 3), "num_groups": 20, **SAME, "stride_nd": (2, 2)}, dtype=dtype,
    )  # fmt: skip
    assert_like_method(network, "cpu.quantized_depthwise_convolution")


@pytest.mark.parametrize("method", ["tflite", "tflite-xnnpack", "gpu", "dla-8"])
def test_a_deconvolution_is_the_methods(method):
    network = weighted_operator(
        "deconvolution", method, (1, 20, 5, 4), random_weights((20, 12, 3, 3)), np.arange(12, dtype=np.int32) * 99,
        {"num_output_maps": 12, "kernel_size_nd": (3, 3), **SAME, "stride_nd": (2, 2)},
    )  # fmt: skip
    assert_like_method(network, "cpu.quantized_deconvolution")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_an_inner_product_is_the_methods(method, dtype):
    K, scale = 300, 2.0**-8
    network = weighted_operator(
        "fully_connected", method, (3, 50, 1, 1), random_weights((K, 50)), ties(K, scale, 0.04),
        {"num_output_channels": K}, dtype=dtype, scales=scale, output_scale=0.04,
    )  # fmt: skip
    assert_like_method(network, "cpu.quantized_fully_connected")


@settings(max_examples=30, deadline=None)
@given(
    method=st.sampled_from(METHODS),
    channels=st.integers(1, 70),
    outputs=st.integers(1, 70),
    extent=st.integers(1, 9),
    window=st.integers(1, 3),
    stride=st.integers(1, 2),
    zero_points=st.tuples(st.integers(-128, 127), st.integers(-128, 127)),
    exponent=st.floats(-16, 1),
)
def test_any_convolution_is_the_methods(method, channels, outputs, extent, window, stride, zero_points, exponent):
    network = weighted_operator(
        "convolution", method, (1, channels, extent, extent), random_weights((outputs, channels, window, window)),
        np.arange(outputs, dtype=np.int32) * 7,
        {
            "num_output_maps": outputs, "kernel_size_nd": (window, window), "stride_nd": (stride, stride),
            "dilation_nd": (1, 1), "pre_padding": (window // 2,) * 2, "post_padding": (window // 2,) * 2,
        },
        zero_point=zero_points[0], output_zero_point=zero_points[1], scales=float(2.0**exponent) * 2.5,
    )  # fmt: skip
    is_depthwise = channels == outputs == 1
    assert_like_method(network, f"cpu.quantized_{'depthwise_' if is_depthwise else ''}convolution")


def test_weights_with_a_zero_point_and_other_steps_go_by_the_definition():
    network = weighted_operator(
        "convolution", "onnx", (1, 4, 3, 3), random_weights((5, 4, 1, 1)), None,
        {"num_output_maps": 5, "kernel_size_nd": (1, 1), **WINDOW}, weights_zero_point=4,
    )  # fmt: skip
    assert chosen_kernel(network, network.layers[-1:]).name == "cpu.reference"


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("method", ["tflite", "tflite-xnnpack", "onnx", "gpu"])
@pytest.mark.parametrize(
    "fields", [{"activation_type": "LEAKY_RELU", "alpha": 0.1}, {"activation_type": "RELU"}], ids=["leaky", "relu"]
)
def test_a_function_of_a_code_is_looked_up(fields, method, dtype):
    grids = {"output": (0.02, 3)} if fields["activation_type"] == "RELU" else {}
    network = operator_of_codes("activation", method, [(2, 5, 3, 70)], fields, dtype=dtype, **grids)
    every = np.resize(np.arange(256, dtype=np.uint8).view(dtype), (2, 5, 3, 70))
    assert_like_method(network, "cpu.quantized_function", {"x0": every})


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_codes_become_real_numbers_by_a_table(dtype):
    network = operator_of_codes("dequantize", "tflite", [(3, 300)], {}, dtype=dtype, output=None)
    assert_like_method(network, "cpu.quantized_function")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("method", ["tflite", "tflite-xnnpack", "onnx", "gpu"])
def test_a_sum_is_looked_up_for_each_pair_of_codes(method, layout):
    shape = (1, 4, 128, 128)
    network = operator_of_codes("elementwise", method, [shape, shape], {"op": "SUM"})
    assert_like_method(network, "cpu.quantized_sum", layout=layout)


def test_operands_of_two_shapes_are_summed_by_the_definition():
    network = operator_of_codes("elementwise", "onnx", [(1, 4, 3, 3), (1, 4, 1, 1)], {"op": "SUM"})
    assert chosen_kernel(network, network.layers[-1:]).name == "cpu.reference"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_concatenation_brings_each_input_to_the_outputs_grid(layout):
    grids = ((0.02, 3), (0.05, -5))
    network = operator_of_codes("concatenation", "onnx", [(1, 3, 9, 9), (1, 5, 9, 9)], {"axis": 1}, grids=grids)
    assert_like_method(network, "cpu.quantized_concatenation", layout=layout)


def run_engine(network, shapes):
    """What an engine for these shapes of `x` gives for each of them, beside the definition's codes."""
    profile, config = OptimizationProfile(), BuilderConfig()
    profile.set_shape("x", *shapes)
    config.add_optimization_profile(profile)
    config.default_device_type = "CPU"
    layer = network.layers[-1]
    context = Builder().build_engine(network, config).create_execution_context()
    for shape in shapes:
        x = np.random.default_rng(shape[0]).integers(-128, 128, shape).astype(np.int8)
        inputs = [x, *(tensor.spec.value for tensor in layer.inputs[1:])]
        yield context.run({"x": x})[layer.outputs[0].name], layer.operator_method().evaluate(layer, inputs)[0]


@pytest.mark.parametrize("method", ["tflite", "onnx"])
def test_any_number_of_samples_may_come(method):
    network = weighted_operator(
        "convolution", method, (-1, 6, 5, 5), random_weights((9, 6, 3, 3)), np.arange(9, dtype=np.int32) * 99,
        {"num_output_maps": 9, "kernel_size_nd": (3, 3), **SAME}, scales=np.linspace(0.001, 0.01, 9, dtype=np.float32),
    )  # fmt: skip
    assert chosen_kernel(network, network.layers[-1:]).name == "cpu.quantized_convolution"
    for found, expected in run_engine(network, [(1, 6, 5, 5), (2, 6, 5, 5), (5, 6, 5, 5)]):
        np.testing.assert_array_equal(found, expected)


def test_where_one_sample_has_a_rule_of_its_own_any_number_goes_by_the_definition():
    network = weighted_operator(
        "fully_connected", "tflite-2.5", (-1, 9, 1, 1), random_weights((8, 9)), np.arange(8, dtype=np.int32) * 999,
        {"num_output_channels": 8},
    )  # fmt: skip
    assert chosen_kernel(network, network.layers[-1:]).name == "cpu.reference"
    for found, expected in run_engine(network, [(1, 9, 1, 1), (2, 9, 1, 1), (3, 9, 1, 1)]):
        np.testing.assert_array_equal(found, expected)
