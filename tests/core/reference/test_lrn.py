import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dryfit.network.layers.lrn import Lrn

from .oracle import onnx_runtime, random_array, run


@given(window=st.integers(0, 4).map(lambda n: 2 * n + 1), channels=st.integers(1, 8), rank=st.integers(3, 4))
def test_it_agrees_with_onnx_runtime(window, channels, rank):
    x = random_array((2, channels, 3, 2))
    (expected,) = onnx_runtime("LRN", [x], size=window, alpha=0.5, beta=0.75, bias=2.0)
    shape = x.shape if rank == 4 else (2, channels, 6)
    (y,) = run(Lrn(window_size=window, alpha=0.5, beta=0.75, k=2.0), x.reshape(shape))
    np.testing.assert_allclose(y.reshape(x.shape), expected, rtol=1e-5)


def test_an_even_window_has_one_channel_more_behind():
    x = np.array([1, 2, 4], np.float32).reshape(1, 3, 1, 1)
    (y,) = run(Lrn(window_size=2, alpha=2.0, beta=1.0, k=0.0), x)
    np.testing.assert_allclose(y.ravel(), [1 / 5, 2 / 20, 4 / 16], rtol=1e-6)


def test_fp16_squares_do_not_overflow():
    x = np.full((1, 1, 1, 1), 1000, np.float16)
    (y,) = run(Lrn(window_size=1, alpha=1.0, beta=0.5, k=0.0), x)
    assert y.item() == 1.0


def test_a_window_far_wider_than_the_channels_takes_them_all():
    x = np.array([1, 2, 4], np.float32).reshape(1, 3, 1, 1)
    (y,) = run(Lrn(window_size=2**31 + 1, alpha=float(2**31 + 1), beta=1.0, k=0.0), x)
    np.testing.assert_allclose(y.ravel(), [1 / 21, 2 / 21, 4 / 21], rtol=1e-6)
