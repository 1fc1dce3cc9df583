import numpy as np
import pytest

from dryfit.network.layers.fully_connected import FullyConnected

from .oracle import onnx_runtime, random_array, run


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (3, 1, 1), (2, 2, 3, 1, 1)])
def test_it_agrees_with_the_gemm_of_onnx_runtime(shape):
    x, summed = random_array(shape), int(np.prod(shape[-3:]))
    kernel, bias = random_array((6, summed), seed=1), random_array((6,), seed=2)
    (expected,) = onnx_runtime("Gemm", [x.reshape(-1, summed), kernel, bias], transB=1)
    (y,) = run(FullyConnected(num_output_channels=6, kernel=kernel, bias=bias), x)
    np.testing.assert_allclose(y, expected.reshape(*shape[:-3], 6, 1, 1), rtol=1e-4, atol=1e-5)


def test_the_kernel_may_have_any_shape_of_the_right_size():
    x, kernel = random_array((2, 3, 2, 2)), random_array((5, 3, 2, 2), seed=1)
    flat = run(FullyConnected(num_output_channels=5, kernel=kernel.reshape(5, 12)), x)[0]
    np.testing.assert_array_equal(run(FullyConnected(num_output_channels=5, kernel=kernel.ravel()), x)[0], flat)
    np.testing.assert_array_equal(run(FullyConnected(num_output_channels=5, kernel=kernel), x)[0], flat)


def test_fp16_rounds_the_kernel_and_keeps_the_bias():
    x = np.ones((1, 1, 1, 1), np.float16)
    kernel, bias = np.full((1, 1), -2049, np.float32), np.array([2049.25], np.float32)
    # FP16 has 2048 and 2050: the kernel becomes -2048, the bias stays 2049.25.
    (y,) = run(FullyConnected(num_output_channels=1, kernel=kernel, bias=bias), x)
    assert y.item() == 1.25
