"""The reference of dynamic quantize layers, held against the stated formulas and the dequantize reference."""

import ml_dtypes
import numpy as np
import pytest

from dryfit.network.data_types import DataType
from dryfit.network.layers.dequantize import Dequantize
from dryfit.network.layers.dynamic_quantize import DynamicQuantize
from dryfit.reference.registry import evaluate

from .oracle import random_array, run


@pytest.mark.parametrize("axis", [0, 1])
def test_fp4_scales_are_the_blocks_maximum_over_six_as_fp8(axis):
    x, outer = random_array((32, 48)) * 5, np.float32(0.01)
    data, scales = run(DynamicQuantize(axis=axis, block_size=16), x, outer)
    blocks = x.reshape(2, 16, 48) if axis == 0 else x.reshape(32, 3, 16)
    expected = (np.abs(blocks).max(axis=axis if axis == 0 else 2) if axis else np.abs(blocks).max(axis=1)) / (6 * outer)
    np.testing.assert_array_equal(scales, expected.astype(ml_dtypes.float8_e4m3fn))
    assert data.dtype == ml_dtypes.float4_e2m1fn
    wide = evaluate(Dequantize(), [scales, outer])[0]
    restored = evaluate(Dequantize(), [data, wide])[0]
    # The widest gap of FP4 is 2 of 6, so the error is at most a sixth of the largest value, and the scale's rounding.
    limit = np.repeat(np.abs(blocks).max(axis=1 if axis == 0 else 2), 16, axis=axis)
    assert (np.abs(restored - x) <= limit * (1 / 6 + 1 / 16)).all()


def test_fp8_scales_are_powers_of_two_that_reach_every_value():
    x = random_array((4, 64)) * 1000
    layer = DynamicQuantize(axis=1, block_size=32, to_type=DataType.FP8, scale_type=DataType.E8M0)
    data, scales = run(layer, x)
    largest = np.abs(x.reshape(4, 2, 32)).max(axis=2)
    powers = scales.astype(np.float32)
    assert (powers * 448 >= largest).all()
    assert (powers / 2 * 448 < largest).all()
    restored = evaluate(Dequantize(), [data, powers])[0]
    np.testing.assert_allclose(restored, x, rtol=2**-4, atol=2**-9 * powers.max())


def test_a_block_of_zeros_stays_zero():
    data, _ = run(DynamicQuantize(axis=0, block_size=16), np.zeros(16, np.float32), np.float32(1))
    assert not data.astype(np.float32).any()
