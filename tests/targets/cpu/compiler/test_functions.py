"""Vector functions against FP64, over the whole range of FP32."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from dryfit.reference.activation import erf
from dryfit_cpu import codes
from dryfit_cpu.compiler.native import NativeStep
from dryfit_cpu.compiler.vectors import HAS_FUSED_PRODUCTS
from dryfit_cpu.descriptors import Function
from dryfit_cpu.kernels.copying import copy_work, pointwise_work


def evaluated(code, x, alpha=0.0, beta=0.0):
    y = np.empty_like(x)
    NativeStep("function", pointwise_work(codes.FIRST, [x], y, 1, Function(code, alpha, beta))).run()
    return y


def test_sigmoid_is_accurate_to_a_few_units_in_the_last_place():
    x = np.linspace(-87, 87, 100_001).astype(np.float32)
    expected = 1 / (1 + np.exp(-x.astype(np.float64)))
    assert np.abs(evaluated(codes.SIGMOID, x) / expected - 1).max() < 4e-7


def test_tanh_is_accurate_to_a_few_units_in_the_last_place():
    small = 10.0 ** np.linspace(-30, 0, 50_000)
    x = np.concatenate([small, -small, np.linspace(-12, 12, 100_000), [0.625, -0.625]]).astype(np.float32)
    assert np.abs(evaluated(codes.TANH, x) / np.tanh(x.astype(np.float64)) - 1).max() < 4e-7


@pytest.mark.parametrize(
    ("code", "at_minus_infinity", "at_plus_infinity"), [(codes.SIGMOID, 0.0, 1.0), (codes.TANH, -1.0, 1.0)]
)
def test_functions_end_where_they_should(code, at_minus_infinity, at_plus_infinity):
    x = np.array([-np.inf, -1e30, -100, 100, 1e30, np.inf, np.nan], np.float32)
    expected = [at_minus_infinity] * 3 + [at_plus_infinity] * 3 + [np.nan]
    np.testing.assert_allclose(evaluated(code, x), np.array(expected, np.float32), atol=1e-38)


def dense(lowest, highest):
    """Numbers evenly, and by their logarithm on both sides of zero."""
    small = 10.0 ** np.linspace(-36, np.log10(max(-lowest, highest)), 100_000)
    x = np.concatenate([np.linspace(lowest, highest, 100_000), small, -small])
    return x[(x >= lowest) & (x <= highest)].astype(np.float32)


def units(actual, truth):
    """The largest error in units in the last place of FP32."""
    spacing = np.spacing(np.abs(truth).astype(np.float32)).astype(np.float64)
    return (np.abs(actual.astype(np.float64) - truth) / spacing).max()


@pytest.mark.parametrize(
    ("code", "parameters", "function", "lowest", "highest", "allowed"),
    [
        (codes.EXP, (), np.exp, -87.3, 88.7, 2),
        (codes.LOG, (), np.log, 1e-36, 1e38, 0.51),
        (codes.ERF, (), erf, -6, 6, 2),
        (codes.ELU, (1.0, 0.0), lambda x: np.where(x < 0, np.expm1(x), x), -87, 5, 2),
        (codes.SOFTPLUS, (1.0, 1.0), lambda x: np.logaddexp(0, x), -87, 88, 3),
        (codes.SOFTSIGN, (), lambda x: x / (1 + np.abs(x)), -1e6, 1e6, 2),
        (codes.GELU_ERF, (), lambda x: x * (1 + erf(x / np.sqrt(2))) / 2, 0, 20, 2),
        (codes.GELU_TANH, (), lambda x: x / (1 + np.exp(-np.sqrt(8 / np.pi) * (x + 0.044715 * x**3))), 0, 20, 3),
    ],
)
def test_a_function_is_accurate_to_the_stated_units_in_the_last_place(
    code, parameters, function, lowest, highest, allowed
):
    x = dense(lowest, highest)
    assert units(evaluated(code, x, *parameters), function(x.astype(np.float64))) <= allowed


@pytest.mark.parametrize(
    ("code", "bound"), [(codes.GELU_ERF, 5e-8 if HAS_FUSED_PRODUCTS else 6e-8), (codes.GELU_TANH, 3e-7)]
)
def test_gelu_does_not_lose_its_negative_side(code, bound):
    x = dense(-20, 0)
    wide = x.astype(np.float64)
    inner = np.sqrt(8 / np.pi) * (wide + 0.044715 * wide**3)
    below = np.array([math.erfc(-number / math.sqrt(2)) for number in wide.tolist()]) / 2
    truth = wide * (below if code == codes.GELU_ERF else 1 / (1 + np.exp(-inner)))
    error = np.abs(evaluated(code, x) - truth)
    assert error.max() <= bound
    assert (error[x > -5] <= 5e-6 * np.abs(truth[x > -5])).all()


def raised(x, y):
    result = np.empty_like(x)
    NativeStep("power", pointwise_work(codes.POW, [x, y], result, 1)).run()
    return result


@pytest.mark.parametrize("spread", [1e-3, 80.0])
def test_a_power_is_accurate_to_half_a_unit_in_the_last_place(spread):
    generator = np.random.default_rng(0)
    x = np.exp(generator.uniform(-spread, spread, 300_000)).astype(np.float32)
    x = x[x != 1]
    y = (generator.uniform(-85, 85, x.size) / np.log(x.astype(np.float64))).astype(np.float32)
    truth = x.astype(np.float64) ** y.astype(np.float64)
    inside = (truth > 1.2e-38) & (truth < 3.4e38)
    assert units(raised(x, y)[inside], truth[inside]) <= 0.51


def test_powers_of_special_values_are_those_of_numpy():
    whole = [0.0, 1, 2, 3, 16777215, 16777216, 1e30]
    positive = np.array([*whole, 0.5, 2.5, 8388607.5, 1e-45, np.inf, np.nan], np.float32)
    x, y = (axis.ravel().copy() for axis in np.meshgrid(*[np.concatenate([positive, -positive])] * 2))
    with np.errstate(all="ignore"):
        truth = np.power(x, y)
        actual = raised(x, y)
        np.testing.assert_allclose(actual, truth, rtol=3e-7)
    is_number = ~np.isnan(truth)
    np.testing.assert_array_equal(np.signbit(actual[is_number]), np.signbit(truth[is_number]))


@pytest.mark.parametrize(
    ("code", "function"),
    [(codes.FLOOR, np.floor), (codes.CEIL, np.ceil), (codes.ROUND, np.rint), (codes.SIGN, np.sign)],
)
def test_whole_numbers_are_those_of_numpy(code, function):
    borders = np.array([4194303.5, 8388607.5, 8388608, 12582913, 0.49999997, 1e-45, 1e38, np.inf, np.nan], np.float32)
    x = np.concatenate([np.arange(-40, 41, dtype=np.float32) / 4, borders, -borders])
    actual, truth = evaluated(code, x), function(x)
    np.testing.assert_array_equal(actual, truth)
    np.testing.assert_array_equal(np.signbit(actual[truth == 0]), np.signbit(truth[truth == 0]))


def test_every_fp16_number_becomes_the_same_fp32_number():
    halves = np.arange(65536, dtype=np.uint16).view(np.float16)
    y = np.empty(halves.shape, np.float32)
    NativeStep("widen", copy_work(halves, y, 1)).run()
    np.testing.assert_array_equal(y, halves.astype(np.float32))


def test_fp32_is_rounded_to_the_nearest_even_fp16_number():
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    middles = (halves[:-1] + halves[1:]) / 2
    around = [halves, middles, np.nextafter(middles, 0), np.nextafter(middles, np.float32(np.inf))]
    x = np.concatenate([*around, np.array([65519.996, 65520, 65536, 1e30, 1e-30, np.inf, np.nan], np.float32)])
    x = np.concatenate([x, -x])
    y = np.empty(x.shape, np.float16)
    NativeStep("narrow", copy_work(x, y, 1)).run()
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(y, x.astype(np.float16))


def test_every_bf16_number_becomes_the_same_fp32_number():
    brains = np.arange(65536, dtype=np.uint16).view(ml_dtypes.bfloat16)
    y = np.empty(brains.shape, np.float32)
    NativeStep("widen", copy_work(brains, y, 1)).run()
    np.testing.assert_array_equal(y, brains.astype(np.float32))


def test_fp32_is_rounded_to_the_nearest_even_bf16_number():
    brains = np.arange(0x7F81, dtype=np.uint32) << 16
    places = np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)
    x = (brains[:, None] + places).ravel().view(np.float32)
    x = np.concatenate([x, -x])
    y = np.empty(x.shape, ml_dtypes.bfloat16)
    NativeStep("narrow", copy_work(x, y, 1)).run()
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(y.astype(np.float32), x.astype(ml_dtypes.bfloat16).astype(np.float32))
