"""Rounding of native functions against its definition in numpy, at ties, beside them, and at random."""

from __future__ import annotations

import numpy as np
import pytest

from dryfit.quantization.rounding import RoundingMode, round_values
from dryfit_cpu import codes
from dryfit_cpu.compiler.native import NativeStep
from dryfit_cpu.kernels.integer_pointwise import requantize_work
from dryfit_cpu.kernels.integer_stages import StageGrid
from dryfit_cpu.kernels.requantization import GroupRequantization


def rounded(values, mode):
    """FP32 numbers as INT8, by the native function that requantizes; it reads them as a residual of zeros."""
    steps = GroupRequantization(
        unit=1.0,
        rounds_sum=False,
        sum_limits=(-128.0, 127.0),
        sum_multiplier=1.0,
        operation=codes.SUM,
        residual="values",
        residual_multiplier=1.0,
        residual_zero=0,
        limits=(-128.0, 127.0),
        rounds_last=False,
        last_multiplier=1.0,
        last_limits=(-128.0, 127.0),
        zero_point=0,
        rounding=mode,
        is_quantized=True,
    )
    zeros, output = np.zeros(values.shape, np.int8), np.empty(values.shape, np.int8)
    NativeStep("round", requantize_work(zeros, StageGrid(1.0), steps, values, output, 1)).run()
    return output


@pytest.mark.parametrize("mode", RoundingMode)
def test_every_tie_and_its_neighbours_are_rounded_as_defined(mode):
    ties = (np.arange(-140, 140) + 0.5).astype(np.float32)
    whole = np.arange(-140, 140).astype(np.float32)
    beside = [np.nextafter(x, to) for x in (ties, whole) for to in np.float32([-np.inf, np.inf])]
    values = np.concatenate([ties, whole, *beside, np.float32([0.0, -0.0, 1e-30, -1e-30, 1e30, -1e30])])
    expected = round_values(np.clip(values, -128, 127), mode).astype(np.int8)
    np.testing.assert_array_equal(rounded(values, mode), expected)


@pytest.mark.parametrize("mode", RoundingMode)
def test_random_numbers_are_rounded_as_defined(mode):
    values = (np.random.default_rng(0).standard_normal(100_003) * 60).astype(np.float32)
    expected = round_values(np.clip(values, -128, 127), mode).astype(np.int8)
    np.testing.assert_array_equal(rounded(values, mode), expected)
