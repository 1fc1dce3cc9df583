"""Which definition each method has for operators without weights, what it refuses, and what it does not have."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from tests.core.quantization.methods.operator_calls import call_of_layer, operand

from dryfit.errors import ConfigError
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import Activation, ActivationType
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation
from dryfit.network.layers.movement import Concatenation
from dryfit.network.layers.normalization import Softmax
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.layers.reduction import Reduce, ReduceOperation
from dryfit.network.layers.resize import InterpolationMode, Resize
from dryfit.network.layers.window_layer import Pooling, PoolingType
from dryfit.plugins.quantize_methods import quantize_method

TYPES = {"int8": DataType.INT8, "uint8": DataType.UINT8}
SHAPE = (1, 2, 4, 4)
LAYERS = {
    "average_pool": Pooling(pooling_type=PoolingType.AVERAGE, window_size_nd=(2, 2)),
    "global_average_pool": Reduce(op=ReduceOperation.AVG, axes=0b1100, keep_dims=True),
    "bias_add": Elementwise(op=ElementWiseOperation.SUM),
    "concat": Concatenation(axis=1),
    "eltwise_sum": Elementwise(op=ElementWiseOperation.SUM),
    "leaky_relu": Activation(activation_type=ActivationType.LEAKY_RELU, alpha=0.1),
    "quantize": Quantize(),
    "dequantize": Dequantize(),
    "relu": Activation(activation_type=ActivationType.RELU),
    "resize_bilinear": Resize(shape=(1, 2, 8, 8), resize_mode=InterpolationMode.LINEAR),
    "sigmoid": Activation(activation_type=ActivationType.SIGMOID),
    "softmax": Softmax(axes=2),
}


def call_of(operator, type_name="int8", *, scale=None, input_scale=0.5, layer=None):
    """A use of an operator that every method with it takes, unless scales say otherwise."""
    dtype = TYPES[type_name].numpy
    first = operand(np.zeros(SHAPE, dtype), input_scale)
    operands = [first]
    if operator in ("concat", "eltwise_sum"):
        operands.append(first)
    elif operator == "bias_add":
        operands.append(operand(np.zeros((1, 2, 1, 1), dtype), input_scale))
    elif operator == "quantize":
        operands = [operand(np.zeros(SHAPE, np.float32), None)]
    is_fixed = operator in ("sigmoid", "softmax")
    call = call_of_layer(
        layer or LAYERS[operator],
        *operands,
        scale=scale or (1 / 256 if is_fixed else 0.5),
        zero_point=int(np.iinfo(dtype).min) if is_fixed else 0,
        to_type=TYPES[type_name],
    )
    return attrs.evolve(call, output_scale=None, to_type=DataType.FLOAT) if operator == "dequantize" else call


REFERENCE = {
    "average_pool": "average_of_codes",
    "global_average_pool": "mean_by_divided_multiplier",
    "bias_add": "sum_by_three_multipliers",
    "concat": {"int8": "concatenated", "uint8": "concatenated_by_line"},
    "eltwise_sum": "sum_by_three_multipliers",
    "leaky_relu": "leaky_relu",
    "quantize": "quantize",
    "dequantize": "dequantize",
    "relu": "relu",
    "resize_bilinear": {"int8": "resized_by_whole_places", "uint8": "resized_in_real_numbers"},
    "sigmoid": "sigmoid",
    "softmax": "softmax_in_fixed_point",
}
OPTIMIZED = {
    **REFERENCE,
    "global_average_pool": "mean_of_codes",
    "dequantize": "dequantize_by_line",
    "softmax": "softmax_by_table",
    "resize_bilinear": {"int8": "resized_by_whole_places", "uint8": "resized_by_products_of_weights"},
}
DEVICE = {
    **dict.fromkeys(REFERENCE, "in_real_numbers"),
    **{name: name for name in ("quantize", "dequantize", "sigmoid")},
}
DEFINITIONS = {
    "tflite": REFERENCE,
    "tflite-2.14": REFERENCE,
    "tflite-2.5": OPTIMIZED,
    "tflite-ruy": OPTIMIZED,
    "tflite-xnnpack": {
        **REFERENCE,
        "global_average_pool": "mean_of_scaled_codes",
        "bias_add": "sum_by_common_shift",
        "eltwise_sum": "sum_by_common_shift",
        "leaky_relu": "leaky_relu_by_shift",
        "resize_bilinear": "resized_by_whole_weights",
        "sigmoid": "sigmoid_in_double",
        "softmax": "softmax_by_table",
    },
    "onnx": {
        **DEVICE,
        "average_pool": "average_of_real_values",
        "global_average_pool": "average_of_sums",
        "bias_add": "sum_by_fused_products",
        "concat": "concatenated_by_value",
        "eltwise_sum": "sum_by_fused_products",
        "resize_bilinear": "resized_and_cut_off",
        "sigmoid": "sigmoid_by_quotient",
        "softmax": "softmax_by_large_table",
    },
    "caffe2": {
        "average_pool": "average_of_sums",
        "global_average_pool": "average_of_sums",
        "concat": "concatenated",
        "eltwise_sum": "sum_by_common_shift",
        "leaky_relu": "leaky_relu_by_ratio",
        "quantize": "quantize",
        "dequantize": "dequantize",
        "relu": "relu_of_codes",
        "sigmoid": "sigmoid",
        "softmax": "softmax_of_integers",
    },
    "gpu": DEVICE,
    "dla-8": DEVICE,
    "dla-10": DEVICE,
}
CASES = [
    (method, operator, type_name)
    for method, operators in DEFINITIONS.items()
    for operator in operators
    for type_name in (["uint8"] if method == "caffe2" else TYPES)
]


@pytest.mark.parametrize(("method", "operator", "type_name"), CASES)
def test_the_definition_is_the_methods_own_and_computes(method, operator, type_name):
    expected = DEFINITIONS[method][operator]
    call = call_of(operator, type_name)
    rule = quantize_method(method).rule_for(call)
    assert rule.definition.__name__ == (expected if isinstance(expected, str) else expected[type_name])
    output = rule.definition(call, rule)
    assert output.shape == call.output_shape
    assert output.dtype == call.to_type.numpy


@pytest.mark.parametrize("operator", ["bias_add", "resize_bilinear"])
def test_what_caffe2_lacks_is_refused(operator):
    with pytest.raises(ConfigError, match="does not have this operator"):
        quantize_method("caffe2").rule_for(call_of(operator, "uint8"))


def test_caffe2_has_no_mixed_types():
    with pytest.raises(ConfigError, match=r"found average_pool of INT8 to UINT8; allowed: INT8, one scale"):
        quantize_method("caffe2").rule_for(attrs.evolve(call_of("average_pool"), to_type=DataType.UINT8))


@pytest.mark.parametrize(
    ("method", "operator", "type_name", "scales", "text"),
    [
        ("tflite", "sigmoid", "int8", {"scale": 0.01}, "1/256"),
        ("tflite", "softmax", "int8", {"scale": 0.01}, "1/256"),
        ("tflite", "concat", "int8", {"scale": 0.25}, "one scale and one zero point"),
        ("tflite", "average_pool", "uint8", {"scale": 0.25}, "one scale and one zero point"),
        ("tflite", "resize_bilinear", "uint8", {"scale": 0.25}, "one scale and one zero point"),
        ("tflite", "eltwise_sum", "int8", {"scale": 2.0**-30}, "must be less than 2\\*\\*20 \\* the output scale"),
        ("tflite-ruy", "eltwise_sum", "int8", {"scale": 2.0**-8}, "INT16"),
        ("caffe2", "eltwise_sum", "uint8", {"scale": 1024.0}, "larger input scale"),
        ("caffe2", "leaky_relu", "uint8", {"scale": 1024.0}, "2\\*\\*-8"),
        ("caffe2", "eltwise_sum", "uint8", {"scale": 2.0**-10}, "below 2\\*\\*8"),
        ("caffe2", "average_pool", "uint8", {"scale": 1024.0}, "2\\*\\*-8"),
        ("caffe2", "relu", "uint8", {"scale": 0.25}, "one scale and one zero point"),
        ("caffe2", "concat", "uint8", {"scale": 0.25}, "first input"),
        ("onnx", "softmax", "int8", {"scale": 2.0**-12}, "148 times"),
    ],
)
def test_scales_that_a_library_refuses_are_refused(method, operator, type_name, scales, text):
    assert quantize_method(method).rule_for(call_of(operator, type_name))
    with pytest.raises(ConfigError, match=text):
        quantize_method(method).rule_for(call_of(operator, type_name, **scales))


@pytest.mark.parametrize(("operator", "definition"), [("leaky_relu",) * 2, ("eltwise_sum", "sum_by_three_multipliers")])
def test_what_xnnpack_leaves_over_is_tensorflow_lites_own(operator, definition):
    rule = quantize_method("tflite-xnnpack").rule_for(call_of(operator, scale=1024.0))
    assert rule.definition.__name__ == definition


def test_a_mean_over_channels_has_no_rule_in_onnx_runtime():
    layer = Reduce(op=ReduceOperation.AVG, axes=0b10, keep_dims=True)
    with pytest.raises(ConfigError, match="over all spatial axes"):
        quantize_method("onnx").rule_for(call_of("global_average_pool", layer=layer))
    for method in ("gpu", "tflite"):
        assert quantize_method(method).rule_for(call_of("global_average_pool", layer=layer))


@pytest.mark.parametrize(("method", "expected"), [("gpu", [0, 2]), ("dla-10", [0, 2]), ("dla-8", [1, 2])])
def test_devices_round_halves_as_their_arithmetic_says(method, expected):
    layer = LAYERS["eltwise_sum"]
    call = call_of_layer(layer, operand(np.int8([1, 3]), 0.5), operand(np.int8([0, 0]), 0.5), scale=1.0)
    rule = quantize_method(method).rule_for(call)
    assert rule.definition(call, rule).tolist() == expected
