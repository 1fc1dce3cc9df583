"""Vector functions against FP64, over the whole range of FP32."""

from __future__ import annotations

import numpy as np
import pytest

from dryfit_cpu import codes
from dryfit_cpu.kernels.copying import copy_work, pointwise_work
from dryfit_cpu.steps import NativeStep


def evaluated(code, x, alpha=0.0, beta=0.0):
    y = np.empty_like(x)
    NativeStep("function", pointwise_work(codes.FIRST, [x], y, 1, (code, alpha, beta))).run()
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
