import numpy as np
import pytest

from dryfit.network.layers.parametric_relu import ParametricRelu

from .oracle import onnx_runtime, random_array, run


@pytest.mark.parametrize("shape", [(1, 3, 1, 1), (1, 1, 1, 1), (2, 3, 4, 5), (1, 1, 4, 5)])
def test_it_agrees_with_onnx_runtime(shape):
    x, slopes = random_array((2, 3, 4, 5)), random_array(shape, seed=1)
    np.testing.assert_array_equal(run(ParametricRelu(), x, slopes)[0], onnx_runtime("PRelu", [x, slopes])[0])


def test_fp16_is_rounded_once():
    x, slopes = random_array((100,), np.float16), random_array((1,), np.float16, seed=1)
    expected = np.where(x >= 0, x, (x.astype(np.float32) * slopes.astype(np.float32)).astype(np.float16))
    np.testing.assert_array_equal(run(ParametricRelu(), x, slopes)[0], expected)
