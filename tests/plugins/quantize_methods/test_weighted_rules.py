"""Which requantization each method has for convolution, deconvolution and inner product, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.quantization.methods.operator_calls import call_of_layer, operand

from dryfit.errors import ConfigError
from dryfit.network.data_types import DataType
from dryfit.network.layers.convolution import Convolution, Deconvolution, FullyConnected
from dryfit.network.layers.matrix import MatrixMultiply
from dryfit.network.layers.movement import Identity
from dryfit.plugins.quantize_methods import quantize_method
from dryfit_plugins.quantize_methods import records

K = 16
TYPES = {"int8": DataType.INT8, "uint8": DataType.UINT8}


def layer_of(kind):
    """A layer, the shape of its input and of its weights."""
    return {
        "convolution": (Convolution(num_output_maps=K, kernel_size_nd=(1, 1)), (1, 3, 2, 2), (K, 3, 1, 1)),
        "depthwise": (Convolution(num_output_maps=K, kernel_size_nd=(1, 1), num_groups=K), (1, K, 2, 2), (K, 1, 1, 1)),
        "grouped": (Convolution(num_output_maps=K, kernel_size_nd=(1, 1), num_groups=2), (1, 6, 2, 2), (K, 3, 1, 1)),
        "one_position": (Convolution(num_output_maps=K, kernel_size_nd=(1, 1)), (1, 8, 1, 1), (K, 8, 1, 1)),
        "deconvolution": (Deconvolution(num_output_maps=K, kernel_size_nd=(2, 2)), (1, 3, 2, 2), (3, K, 2, 2)),
        "fully_connected": (FullyConnected(num_output_channels=K), (2, 9, 1, 1), (K, 9)),
        "one_sample": (FullyConnected(num_output_channels=K), (1, 9, 1, 1), (K, 9)),
        "matrices": (MatrixMultiply(), (2, 3, 9), (2, 9, K)),
    }[kind]


def call_of(kind, type_name="int8", *, per_channel=False, bias=None, scale=1.0, weight_zero_point=0):
    """Every input element on its zero point."""
    layer, shape, weights = layer_of(kind)
    dtype = TYPES[type_name].numpy
    w = operand(np.ones(weights, dtype), np.full(K if per_channel else (), 2.0**-3), weight_zero_point)
    operands = [operand(np.zeros(shape, dtype)), w] + ([] if bias is None else [operand(bias, None)])
    return call_of_layer(layer, *operands, scale=scale, to_type=TYPES[type_name])


RECORDS = {
    "tflite": {
        ("convolution", "int8"): "D2",
        ("convolution", "uint8"): "F2",
        ("grouped", "int8"): "D2",
        ("depthwise", "uint8"): "F2",
        ("deconvolution", "int8"): "D2",
        ("deconvolution", "uint8"): "F2",
        ("fully_connected", "int8"): "REAL_DOUBLE",
        ("fully_connected", "uint8"): "REAL_DOUBLE",
        ("matrices", "int8"): "D2",
    },
    "tflite-2.14": {
        ("convolution", "int8"): "D2",
        ("fully_connected", "int8"): "F2",
        ("fully_connected", "int8", "a scale a channel"): "D2",
        ("fully_connected", "uint8"): "F2",
    },
    "tflite-2.5": {
        ("convolution", "int8"): "D1",
        ("convolution", "int8", "a scale a channel"): "D1",
        ("convolution", "uint8"): "F2",
        ("one_position", "int8"): "D2U",
        ("one_position", "uint8"): "F2U",
        ("depthwise", "int8"): "D2U",
        ("depthwise", "uint8"): "F2",
        ("deconvolution", "int8"): "D2U",
        ("fully_connected", "int8"): "F1",
        ("fully_connected", "uint8"): "F2",
        ("one_sample", "int8"): "F2U",
        ("matrices", "int8"): "D1",
    },
    "tflite-ruy": {
        ("convolution", "int8"): "D2U",
        ("convolution", "uint8"): "F2U",
        ("grouped", "int8"): "D2",
        ("grouped", "uint8"): "F2",
        ("depthwise", "int8"): "D2U",
        ("depthwise", "uint8"): "F2",
        ("deconvolution", "uint8"): "F2U",
        ("fully_connected", "int8"): "F2U",
        ("fully_connected", "int8", "a scale a channel"): "D2U",
        ("matrices", "int8"): "D2",
    },
    "tflite-xnnpack": {
        ("convolution", "int8"): "REAL_FLOAT",
        ("depthwise", "int8"): "REAL_FLOAT",
        ("depthwise", "uint8"): "F2",
        ("deconvolution", "uint8"): "REAL_FLOAT",
        ("fully_connected", "int8", "a scale a channel"): "REAL_FLOAT",
        ("matrices", "int8"): "D2",
    },
    "onnx": {
        ("convolution", "int8", "a scale a channel"): "REAL_FLOAT",
        ("convolution", "uint8"): "REAL_FLOAT",
        ("fully_connected", "uint8"): "REAL_FLOAT",
        ("matrices", "uint8"): "REAL_FLOAT",
    },
    "caffe2": {
        ("convolution", "uint8"): "FF2",
        ("depthwise", "uint8"): "FF2",
        ("deconvolution", "uint8"): "FF2",
        ("fully_connected", "uint8"): "FF2",
    },
}


@pytest.mark.parametrize(
    ("method", "case", "record"),
    [(method, case, record) for method, cases in RECORDS.items() for case, record in cases.items()],
    ids=str,
)
def test_a_method_has_the_requantization_of_its_library(method, case, record):
    kind, type_name, *channels = case
    rule = quantize_method(method).rule_for(call_of(kind, type_name, per_channel=bool(channels)))
    assert rule.requantization == getattr(records, record)


TIES = {
    # Sums of 1, -1, 3 and -3 halves, then 4, -4, 12 and -12 eighths: with D2 away from zero, with D2U and D1 half up.
    "tflite": [1, 0, 2, -1, 1, -1, 2, -2],
    "tflite-ruy": [1, 0, 2, -1, 1, 0, 2, -1],
    "tflite-2.5": [1, 0, 2, -1, 1, 0, 2, -1],
    "tflite-xnnpack": [0, 0, 2, -2, 0, 0, 2, -2],
    "onnx": [0, 0, 2, -2, 0, 0, 2, -2],
    "gpu": [0, 0, 2, -2, 0, 0, 2, -2],
    "dla-10": [0, 0, 2, -2, 0, 0, 2, -2],
    "dla-8": [1, -1, 2, -2, 1, -1, 2, -2],
}


@pytest.mark.parametrize("method", TIES)
def test_ties_go_where_the_method_sends_them(method):
    """Multipliers of 1/2 and 1/8; a high product takes care of the first bit, a shift of the others."""
    codes = []
    for scale, sums in ((0.25, [1, -1, 3, -3]), (1.0, [4, -4, 12, -12])):
        bias = np.array((sums * K)[:K], np.int32)
        call = call_of("convolution", bias=bias, scale=scale)
        rule = quantize_method(method).rule_for(call)
        codes += rule.definition(call, rule)[0, :4, 0, 0].tolist()
    assert codes == TIES[method]


def test_caffe2_rounds_as_the_reference_kernels_do():
    call = call_of("convolution", "uint8", bias=np.array([4, 12, 20, 28] * 4, np.int32))
    rule = quantize_method("caffe2").rule_for(call)
    assert rule.definition(call, rule)[0, :4, 0, 0].tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("method", "kind", "type_name", "changes", "message"),
    [
        ("caffe2", "convolution", "int8", {"per_channel": True}, "does not have this operator"),
        ("caffe2", "convolution", "uint8", {"per_channel": True}, "does not have this operator"),
        ("caffe2", "convolution", "uint8", {"scale": 0.125}, "allowed: 2\\*\\*-32 <= multiplier < 1"),
        ("caffe2", "matrices", "uint8", {}, "does not have this operator"),
        ("onnx", "deconvolution", "int8", {}, "does not have this operator"),
        ("tflite", "convolution", "uint8", {"per_channel": True}, "does not have this operator"),
        ("tflite", "convolution", "int8", {"weight_zero_point": 1}, "the zero point of INT8 weights is 0"),
        ("tflite", "convolution", "int8", {"bias": np.ones(K, np.float32)}, "a bias is INT32"),
        ("tflite", "matrices", "uint8", {}, "does not have this operator"),
        ("tflite-2.5", "grouped", "int8", {}, "does not have this operator"),
        ("tflite-2.5", "fully_connected", "int8", {"per_channel": True}, "does not have this operator"),
        ("tflite-xnnpack", "convolution", "int8", {"scale": 2.0**-12}, "every multiplier < 256"),
    ],
)
def test_what_a_library_does_not_have_is_refused(method, kind, type_name, changes, message):
    with pytest.raises(ConfigError, match=message):
        quantize_method(method).rule_for(call_of(kind, type_name, **changes))


def test_weights_of_another_type_are_those_of_onnx_runtime_only():
    layer, shape, weights = layer_of("convolution")
    mixed = [operand(np.zeros(shape, np.uint8)), operand(np.ones(weights, np.int8))]
    call = call_of_layer(layer, *mixed, to_type=DataType.UINT8)
    assert quantize_method("onnx").rule_for(call).requantization == records.REAL_FLOAT
    for method in ("tflite", "tflite-xnnpack", "caffe2"):
        with pytest.raises(ConfigError, match="does not have this operator"):
            quantize_method(method).rule_for(call)


@pytest.mark.parametrize(
    ("method", "code"), [("tflite", 7), ("tflite-ruy", 7), ("tflite-2.5", 7), ("tflite-xnnpack", 7), ("onnx", 6)]
)
def test_a_requantized_tie_goes_where_the_method_sends_it(method, code):
    call = call_of_layer(Identity(), operand(np.full((1, 16), 13, np.int8)), scale=2.0)
    rule = quantize_method(method).rule_for(call)
    assert rule.definition(call, rule).ravel().tolist() == [code] * 16


def test_calibrated_weights_are_symmetric_and_round_up():
    x = np.array([0.5, -0.5, 1.5, -1.5, 127.4, -127.6, 0.49999997], np.float32)
    from dryfit.network.layers.quantization import Quantize

    call = call_of_layer(Quantize(to_type=DataType.INT8), operand(x, None))
    method = quantize_method("calibrated-weights")
    rule = method.rule_for(call)
    assert rule.definition(call, rule).tolist() == [1, 0, 2, -1, 127, -127, 0]
    assert {one.operator for one in method.rules} == {"quantize"}


def test_every_rule_says_what_it_was_held_against():
    for name in (*RECORDS, "gpu", "dla-8", "dla-10"):
        for rule in quantize_method(name).rules:
            assert rule.formula
            assert rule.source
            assert rule.fidelity in ("documented", "inferred", "confirmed")
