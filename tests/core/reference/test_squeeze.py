"""The reference of squeezes, held against ONNX Runtime."""

import numpy as np
import pytest

from dryfit.network.layers.squeeze import Squeeze

from .oracle import onnx_runtime, random_array, run


@pytest.mark.parametrize("axes", [[0], [2], [0, 2], [-3], []])
def test_it_agrees_with_onnx_runtime_and_is_a_view(axes):
    x, axes = random_array((1, 3, 1, 2)), np.array(axes, np.int64)
    if axes.size and axes[0] == -3:
        x = x.transpose(1, 0, 2, 3)
    (expected,) = onnx_runtime("Squeeze", [x, axes]) if axes.size else (x,)
    (output,) = run(Squeeze(), x, axes, dynamic=False)
    np.testing.assert_array_equal(output, expected)
    assert np.shares_memory(output, x)
