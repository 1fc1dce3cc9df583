"""The reference of concatenations, held against ONNX Runtime."""

import ml_dtypes
import numpy as np
import pytest

from dryfit.network.layers.concatenation import Concatenation

from .oracle import onnx_runtime, random_array, run


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.int64, bool])
def test_it_agrees_with_onnx_runtime(axis, dtype):
    shapes = [[2, 3, 4], [2, 3, 4], [2, 3, 4]]
    shapes[1][axis] = 1
    shapes[2][axis] = 0
    inputs = [random_array(shape, seed=i).astype(dtype) for i, shape in enumerate(shapes)]
    (expected,) = onnx_runtime("Concat", inputs, axis=axis)
    (output,) = run(Concatenation(axis=axis), *inputs)
    np.testing.assert_array_equal(output, expected)


def test_narrow_types_keep_their_bits():
    a, b = (np.arange(4, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn) for _ in range(2))
    (output,) = run(Concatenation(axis=0), a, b)
    assert output.dtype == a.dtype
    assert output.tobytes() == a.tobytes() + b.tobytes()
