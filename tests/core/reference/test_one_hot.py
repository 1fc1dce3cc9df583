"""The reference of one-hot layers, held against ONNX Runtime."""

import numpy as np
import pytest

from dryfit.network.layers.one_hot import OneHot

from .oracle import onnx_runtime, run


@pytest.mark.parametrize("axis", [-1, 0, 1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_it_agrees_with_onnx_runtime(axis, dtype):
    indices = np.array([[0, 2, -1], [5, -4, 3]], np.int64)
    values, depth = np.array([-1, 7], dtype), np.array(4, np.int64)
    (expected,) = onnx_runtime("OneHot", [indices, depth, values], axis=axis)
    (output,) = run(OneHot(axis=axis), indices, values, depth)
    assert output.dtype == expected.dtype
    np.testing.assert_array_equal(output, expected)
