"""The reference of selects, held against ONNX Runtime."""

import numpy as np
import pytest

from dryfit.network.layers.select import Select

from .oracle import onnx_runtime, random_array, run


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("shapes", [((2, 3),) * 3, ((2, 1), (1, 3), (2, 3)), ((1, 1), (2, 3), (1, 3))])
def test_it_agrees_with_onnx_runtime(dtype, shapes):
    condition = random_array(shapes[0]) > 0
    a, b = random_array(shapes[1], dtype, seed=1), random_array(shapes[2], dtype, seed=2)
    (expected,) = onnx_runtime("Where", [condition, a, b])
    (output,) = run(Select(), condition, a, b)
    np.testing.assert_array_equal(output, expected)
