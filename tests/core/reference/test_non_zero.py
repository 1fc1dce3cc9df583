"""The reference of non-zero layers, held against ONNX Runtime."""

import ml_dtypes
import numpy as np
import pytest

from dryfit.network.data_types import DataType
from dryfit.network.layers.non_zero import NonZero
from dryfit.reference.registry import evaluate

from .oracle import onnx_runtime, run


@pytest.mark.parametrize("dtype", [np.float32, np.int64, bool])
@pytest.mark.parametrize("shape", [(3, 4), (12,), (0, 2)])
def test_it_agrees_with_onnx_runtime(dtype, shape):
    x = (np.arange(np.prod(shape)).reshape(shape) % 3).astype(dtype)
    (expected,) = onnx_runtime("NonZero", [x])
    (output,) = run(NonZero(indices_type=DataType.INT64), x)
    np.testing.assert_array_equal(output, expected)
    assert run(NonZero(), x)[0].dtype == np.int32


def test_narrow_types_and_negative_zeros_are_told_apart():
    x = np.array([0.0, -0.0, 1.0, np.nan], ml_dtypes.bfloat16)
    assert evaluate(NonZero(), [x])[0].tolist() == [[2, 3]]
