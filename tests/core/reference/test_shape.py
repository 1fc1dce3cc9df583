"""The reference of shape layers."""

import numpy as np
import pytest

from dryfit.network.layers.shape import ShapeLayer

from .oracle import onnx_runtime, random_array, run


@pytest.mark.parametrize("shape", [(2, 3, 4), (0, 5), ()])
def test_it_agrees_with_onnx_runtime(shape):
    x = random_array(shape)
    (expected,) = onnx_runtime("Shape", [x])
    (output,) = run(ShapeLayer(), x)
    assert output.dtype == expected.dtype
    np.testing.assert_array_equal(output, expected)
