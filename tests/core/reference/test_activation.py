"""The references of activations and parametric ReLU, held against ONNX Runtime and formulas."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from dryfit.network.layers.activation import Activation, ActivationType, ParametricRelu
from dryfit.reference.activation import erf

from .oracle import onnx_runtime, random_array, run

T = ActivationType
CASES = [
    (T.RELU, 0, 0, "Relu", {}),
    (T.SIGMOID, 0, 0, "Sigmoid", {}),
    (T.TANH, 0, 0, "Tanh", {}),
    (T.LEAKY_RELU, 0.3, 0, "LeakyRelu", {"alpha": 0.3}),
    (T.ELU, 0.7, 0, "Elu", {"alpha": 0.7}),
    (T.SELU, 1.6, 1.05, "Selu", {"alpha": 1.6, "gamma": 1.05}),
    (T.SOFTSIGN, 0, 0, "Softsign", {}),
    (T.SOFTPLUS, 1, 1, "Softplus", {}),
    (T.HARD_SIGMOID, 0.2, 0.5, "HardSigmoid", {"alpha": 0.2, "beta": 0.5}),
    (T.THRESHOLDED_RELU, 0.8, 0, "ThresholdedRelu", {"alpha": 0.8}),
    (T.GELU_ERF, 0, 0, "Gelu", {"approximate": "none"}),
    (T.GELU_TANH, 0, 0, "Gelu", {"approximate": "tanh"}),
    (T.HARD_SWISH, 0, 0, "HardSwish", {}),
]
EDGES = np.array([0.0, -0.0, 1.0, -1.0, 0.8, 30.0, -30.0, 100.0, -100.0], np.float32)


@pytest.mark.parametrize(("type_", "alpha", "beta", "operator", "attributes"), CASES, ids=[c[0].name for c in CASES])
def test_activations_agree_with_the_onnx_runtime_operator(type_, alpha, beta, operator, attributes):
    x = np.concatenate([random_array((1000,)) * 4, EDGES])
    (expected,) = onnx_runtime(operator, [x], **attributes)
    (y,) = run(Activation(activation_type=type_, alpha=alpha, beta=beta), x)
    np.testing.assert_allclose(y, expected, rtol=2e-5, atol=2e-6)


def test_clip_agrees_with_onnx_runtime():
    x = random_array((100,)) * 4
    (expected,) = onnx_runtime("Clip", [x, np.float32(-1.5), np.float32(2)])
    np.testing.assert_array_equal(run(Activation(activation_type=T.CLIP, alpha=-1.5, beta=2), x)[0], expected)


@pytest.mark.parametrize(
    ("type_", "formula"),
    [
        (T.SCALED_TANH, lambda x: 1.5 * math.tanh(0.5 * x)),
        (T.SOFTPLUS, lambda x: 1.5 * math.log1p(math.exp(0.5 * x))),
    ],
)
def test_both_parameters_stand_where_tensorrt_has_them(type_, formula):
    x = random_array((50,))
    (y,) = run(Activation(activation_type=type_, alpha=1.5, beta=0.5), x)
    np.testing.assert_allclose(y, [formula(value) for value in x.tolist()], rtol=1e-5)


def test_every_type_has_a_case():
    assert {case[0] for case in CASES} | {T.CLIP, T.SCALED_TANH} == set(ActivationType)


@pytest.mark.parametrize("type_", list(ActivationType), ids=lambda type_: type_.name)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_narrow_types_are_the_fp32_result_rounded_once(type_, dtype):
    x = (random_array((200,)) * 3).astype(dtype)
    layer = Activation(activation_type=type_, alpha=0.25, beta=1.5)
    (wide,) = run(layer, x.astype(np.float32))
    np.testing.assert_array_equal(run(layer, x)[0], wide.astype(dtype))


def test_int8_is_rounded_to_even_and_saturates():
    x = np.array([-128, -3, 1, 3, 100], np.int8)
    layer = Activation(activation_type=T.LEAKY_RELU, alpha=0.5)
    assert run(layer, x)[0].tolist() == [-64, -2, 1, 3, 100]  # -1.5 becomes -2
    layer = Activation(activation_type=T.SCALED_TANH, alpha=200, beta=1)
    assert run(layer, x)[0].tolist() == [-128, -128, 127, 127, 127]


def test_fp8_saturates_instead_of_becoming_nan():
    x = np.array([400, -400, np.nan], ml_dtypes.float8_e4m3fn)
    (y,) = run(Activation(activation_type=T.SELU, alpha=1000, beta=2), x)
    np.testing.assert_array_equal(y.astype(np.float32), [448, -448, np.nan])


@pytest.mark.parametrize("type_", [T.RELU, T.SIGMOID, T.LEAKY_RELU, T.GELU_ERF, T.CLIP, T.SOFTPLUS])
def test_nan_stays_nan(type_):
    (y,) = run(Activation(activation_type=type_, alpha=1, beta=2), np.array([np.nan], np.float32))
    assert np.isnan(y).all()


def test_the_error_function_is_the_one_of_the_standard_library():
    x = np.concatenate([np.linspace(-7, 7, 5001), [0.0, 1e-300, -1e-20, np.inf, -np.inf]])
    expected = np.array([math.erf(value) for value in x.tolist()])
    np.testing.assert_allclose(erf(x), expected, rtol=2e-15, atol=0)
    assert np.isnan(erf(np.array([np.nan]))).all()


@pytest.mark.parametrize("shape", [(1, 3, 1, 1), (1, 1, 1, 1), (2, 3, 4, 5), (1, 1, 4, 5)])
def test_parametric_relu_agrees_with_onnx_runtime(shape):
    x, slopes = random_array((2, 3, 4, 5)), random_array(shape, seed=1)
    np.testing.assert_array_equal(run(ParametricRelu(), x, slopes)[0], onnx_runtime("PRelu", [x, slopes])[0])


def test_fp16_is_rounded_once():
    x, slopes = random_array((100,), np.float16), random_array((1,), np.float16, seed=1)
    expected = np.where(x >= 0, x, (x.astype(np.float32) * slopes.astype(np.float32)).astype(np.float16))
    np.testing.assert_array_equal(run(ParametricRelu(), x, slopes)[0], expected)
