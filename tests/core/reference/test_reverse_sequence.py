"""The reference of reverse-sequence layers, held against ONNX Runtime."""

import numpy as np
import pytest

from dryfit.errors import ExecutionError
from dryfit.network.layers.reverse_sequence import ReverseSequence
from dryfit.reference.registry import evaluate

from .oracle import onnx_runtime, random_array, run


@pytest.mark.parametrize(("batch_axis", "sequence_axis"), [(1, 0), (0, 1)])
@pytest.mark.parametrize("rest", [(), (3,)])
def test_it_agrees_with_onnx_runtime(batch_axis, sequence_axis, rest):
    x, lengths = random_array((4, 4, *rest)), np.array([4, 3, 1, 2])
    (expected,) = onnx_runtime("ReverseSequence", [x, lengths], batch_axis=batch_axis, time_axis=sequence_axis)
    (output,) = run(ReverseSequence(batch_axis=batch_axis, sequence_axis=sequence_axis), x, lengths)
    np.testing.assert_array_equal(output, expected)


def test_axes_may_lie_anywhere():
    x = random_array((2, 3, 4))
    (output,) = run(ReverseSequence(batch_axis=2, sequence_axis=1), x, np.array([3, 2, 0, 1]))
    np.testing.assert_array_equal(output[:, :, 0], x[:, ::-1, 0])
    np.testing.assert_array_equal(output[:, :, 1], x[:, [1, 0, 2], 1])
    np.testing.assert_array_equal(output[:, :, 2:], x[:, :, 2:])


def test_a_length_past_the_end_is_refused():
    with pytest.raises(ExecutionError, match="allowed: 0 to 2"):
        evaluate(ReverseSequence(), [random_array((2, 2)), np.array([1, 3])])
