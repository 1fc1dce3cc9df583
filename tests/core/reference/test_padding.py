import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from dryfit.network.layers.padding import Padding

from .oracle import onnx_runtime, random_array, run

PAIRS = st.tuples(st.integers(-2, 2), st.integers(-2, 2))


@given(pre=PAIRS, post=PAIRS)
def test_padding_and_cropping_agree_with_onnx_runtime(pre, post):
    x = random_array((2, 3, 4, 5))
    assume(all(e + a + b > 0 for e, a, b in zip((4, 5), pre, post, strict=True)))
    (expected,) = onnx_runtime("Pad", [x, np.array([0, 0, *pre, 0, 0, *post])])
    np.testing.assert_array_equal(run(Padding(pre_padding_nd=pre, post_padding_nd=post), x)[0], expected)


def test_a_crop_is_a_view():
    x = random_array((1, 4, 4))
    (y,) = run(Padding(pre_padding_nd=(-1, 0), post_padding_nd=(0, -1)), x)
    assert np.shares_memory(x, y)


def test_integers_and_views_are_accepted():
    x = np.arange(6, dtype=np.int8).reshape(2, 3).T
    (y,) = run(Padding(pre_padding_nd=(0, 1), post_padding_nd=(-1, 0)), x)
    assert y.tolist() == [[0, 0, 3], [0, 1, 4]]
