"""The reference of unsqueezes, held against ONNX Runtime."""

import numpy as np
import pytest

from dryfit.network.layers.unsqueeze import Unsqueeze

from .oracle import onnx_runtime, random_array, run


@pytest.mark.parametrize("axes", [[0], [2], [0, 3], [-1], [4, 0, -2]])
def test_it_agrees_with_onnx_runtime_and_is_a_view(axes):
    x, axes = random_array((2, 3)), np.array(axes, np.int64)
    (expected,) = onnx_runtime("Unsqueeze", [x, axes])
    (output,) = run(Unsqueeze(), x, axes, dynamic=False)
    np.testing.assert_array_equal(output, expected)
    assert np.shares_memory(output, x)
