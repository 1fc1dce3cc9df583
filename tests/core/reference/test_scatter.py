"""The reference of scatters, held against ONNX Runtime."""

import numpy as np
import pytest

from dryfit.errors import ExecutionError
from dryfit.network.layers.scatter import Scatter, ScatterMode, ScatterReduction
from dryfit.reference.registry import evaluate

from .oracle import onnx_runtime, random_array, run

REDUCTIONS = list(ScatterReduction)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_elements_agree_with_onnx_runtime(reduction, axis, dtype):
    data, updates = random_array((4, 5), dtype), random_array((2, 3), dtype, seed=1)
    # Without a reduction a place that is written twice has no defined value: here none is.
    indices = np.array([[0, 1, 2], [-1, 3, -4]]) if axis == 1 else np.array([[0, 1, 2], [-1, 3, -3]])
    (expected,) = onnx_runtime("ScatterElements", [data, indices, updates], axis=axis, reduction=reduction.value)
    (output,) = run(Scatter(mode=ScatterMode.ELEMENT, axis=axis, reduction=reduction), data, indices, updates)
    np.testing.assert_allclose(output, expected, rtol=1e-6)


@pytest.mark.parametrize("reduction", [r for r in REDUCTIONS if r is not ScatterReduction.NONE])
def test_updates_of_one_place_are_all_combined(reduction):
    data, updates = random_array((4, 5)), random_array((3, 5), seed=1)
    indices = np.array([[1], [1], [-3]])
    (expected,) = onnx_runtime("ScatterND", [data, indices, updates], reduction=reduction.value)
    output = evaluate(Scatter(mode=ScatterMode.ND, reduction=reduction), [data, indices, updates])[0]
    np.testing.assert_allclose(output, expected, rtol=1e-6)


@pytest.mark.parametrize("width", [1, 2, 3])
def test_tensors_agree_with_onnx_runtime(width):
    data = random_array((4, 5, 6))
    indices = np.array([[0, 1, 2], [-1, 3, -4]])[:, :width]
    updates = random_array((2, *data.shape[width:]), seed=1)
    (expected,) = onnx_runtime("ScatterND", [data, indices, updates])
    output = evaluate(Scatter(mode=ScatterMode.ND), [data, indices, updates])[0]
    np.testing.assert_array_equal(output, expected)


def test_half_precision_sums_are_rounded_once():
    data = np.array([2048], np.float16)
    updates = np.ones((1, 4), np.float16).reshape(4)
    layer = Scatter(mode=ScatterMode.ELEMENT, reduction=ScatterReduction.ADD)
    output = evaluate(layer, [data, np.zeros(4, np.int64), updates])[0]
    assert output.dtype == np.float16
    assert output[0] == 2052  # one by one, each half would be rounded away


def test_the_data_is_not_changed():
    data = random_array((3,))
    before = data.copy()
    evaluate(Scatter(mode=ScatterMode.ELEMENT), [data, np.array([0]), np.array([9], np.float32)])
    np.testing.assert_array_equal(data, before)


def test_an_index_past_the_end_is_refused():
    with pytest.raises(ExecutionError, match="found 3"):
        evaluate(Scatter(mode=ScatterMode.ND), [random_array((3,)), np.array([[3]]), random_array((1,))])
