"""The reference of shuffles, held against ONNX Runtime and numpy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dryfit.network.layers.shuffle import Shuffle
from dryfit.reference.registry import evaluate

from .oracle import onnx_runtime, random_array, run


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 0, 2)])
def test_a_transpose_agrees_with_onnx_runtime_and_is_a_view(order):
    x = random_array((2, 3, 4))
    (expected,) = onnx_runtime("Transpose", [x], perm=order)
    (output,) = run(Shuffle(first_transpose=order), x)
    np.testing.assert_array_equal(output, expected)
    assert np.shares_memory(output, x)


@pytest.mark.parametrize(
    ("shape", "dims", "zero_is_placeholder"),
    [
        ((2, 3, 4), (0, -1), True),
        ((2, 3, 4), (4, 0, 2), True),
        ((0, 3), (3, 0), False),
        ((1,), (), True),
    ],
)
def test_a_reshape_agrees_with_onnx_runtime(shape, dims, zero_is_placeholder):
    x = random_array(shape)
    (expected,) = onnx_runtime("Reshape", [x, np.array(dims, np.int64)], allowzero=int(not zero_is_placeholder))
    (output,) = run(Shuffle(reshape_dims=dims, zero_is_placeholder=zero_is_placeholder), x)
    np.testing.assert_array_equal(output, expected)
    dynamic = evaluate(Shuffle(zero_is_placeholder=zero_is_placeholder), [x, np.array(dims, np.int64)])[0]
    np.testing.assert_array_equal(dynamic, expected)


@given(st.permutations(range(4)), st.permutations(range(3)), st.sampled_from([(0, -1, 2), (4, 0, -1), (-1, 1, 2)]))
def test_the_three_steps_follow_each_other(first, second, dims):
    x = random_array((2, 4, 4, 2))
    middle = x.transpose(first)
    sizes = [middle.shape[axis] if dim == 0 else dim for axis, dim in enumerate(dims)]
    layer = Shuffle(first_transpose=tuple(first), reshape_dims=dims, second_transpose=tuple(second))
    np.testing.assert_array_equal(evaluate(layer, [x])[0], middle.reshape(sizes).transpose(second))
