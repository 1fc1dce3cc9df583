import numpy as np
import pytest

from dryfit.network.layers.softmax import Softmax

from .oracle import onnx_runtime, random_array, run


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_it_agrees_with_onnx_runtime(axis):
    x = random_array((2, 3, 4, 5)) * 10
    (expected,) = onnx_runtime("Softmax", [x], axis=axis)
    np.testing.assert_allclose(run(Softmax(axes=1 << axis), x)[0], expected, rtol=1e-5, atol=1e-7)


def test_large_numbers_do_not_overflow():
    x = np.array([[1e30, 1e30, 0]], np.float32)
    assert run(Softmax(axes=2), x)[0].tolist() == [[0.5, 0.5, 0]]


def test_fp16_is_rounded_once():
    x = random_array((4, 100), np.float16)
    (expected,) = onnx_runtime("Softmax", [x.astype(np.float32)], axis=1)
    np.testing.assert_allclose(run(Softmax(axes=2), x)[0], expected.astype(np.float16), rtol=1e-3)


def test_nothing_stays_nothing():
    assert run(Softmax(axes=2), np.zeros((3, 0), np.float32))[0].shape == (3, 0)
