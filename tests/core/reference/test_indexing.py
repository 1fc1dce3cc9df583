"""The references of layers that read or make indices, held against ONNX Runtime and loops."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

from dryfit.errors import ExecutionError
from dryfit.network.data_types import DataType
from dryfit.network.layers.indexing import Gather, GatherMode, NonZero, OneHot, Scatter, ScatterMode, ScatterReduction
from dryfit.reference.registry import evaluate

from .oracle import onnx_runtime, random_array, run


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(), (3,), (2, 2)])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_slices_agree_with_onnx_runtime(axis, shape, dtype):
    data = random_array((3, 4, 5))
    indices = np.random.default_rng(1).integers(-3, 3, shape).astype(dtype)
    (expected,) = onnx_runtime("Gather", [data, indices], axis=axis)
    (output,) = run(Gather(axis=axis), data, indices)
    np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_elements_agree_with_onnx_runtime_for_gather(axis):
    data = random_array((3, 4, 5))
    indices = np.random.default_rng(1).integers(-3, 3, (2, 3, 4))
    (expected,) = onnx_runtime("GatherElements", [data, indices], axis=axis)
    (output,) = run(Gather(mode=GatherMode.ELEMENT, axis=axis), data, indices)
    np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize(
    ("shared", "shape"), [(0, (2, 1)), (0, (2, 2, 3)), (0, (3,)), (1, (2, 3, 1)), (2, (2, 3, 1)), (1, (2, 2))]
)
def test_tensors_agree_with_onnx_runtime_for_gather(shared, shape):
    data = random_array((2, 3, 4, 5))
    indices = np.random.default_rng(1).integers(-2, 2, shape)
    (expected,) = onnx_runtime("GatherND", [data, indices], batch_dims=shared)
    layer = Gather(mode=GatherMode.ND, num_elementwise_dims=shared)
    output = evaluate(layer, [data, indices])[0]
    np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize("axis", [1, 2, 3])
def test_elementwise_dimensions_pick_from_the_own_batch(axis):
    data = random_array((2, 3, 4, 5))
    indices = np.random.default_rng(1).integers(0, 3, (2, 2, 2))
    (output,) = run(Gather(axis=axis, num_elementwise_dims=1), data, indices)
    expected = np.stack([np.take(data[n], indices[n], axis=axis - 1) for n in range(2)])
    np.testing.assert_array_equal(output, expected)


def test_vectors_without_elements_pick_the_whole_data():
    data = random_array((2, 3))
    output = evaluate(Gather(mode=GatherMode.ND), [data, np.zeros((4, 0), np.int64)])[0]
    np.testing.assert_array_equal(output, np.stack([data] * 4))


@pytest.mark.parametrize("mode", [GatherMode.DEFAULT, GatherMode.ELEMENT])
@pytest.mark.parametrize("index", [3, -4])
def test_an_index_past_the_end_is_refused_for_gather(mode, index):
    with pytest.raises(ExecutionError) as caught:
        evaluate(Gather(mode=mode, name="pick"), [random_array((3,)), np.array([0, index])])
    assert caught.value.found == index
    assert caught.value.allowed == "-3 to 2"
    assert "pick" in str(caught.value)


def test_strided_views_are_picked_from_like_copies():
    data = random_array((4, 6))[::2, ::-2]
    indices = np.array([[1, 0], [0, 1]])[::-1]
    for mode, axis in itertools.product([GatherMode.DEFAULT, GatherMode.ELEMENT], [0, 1]):
        layer = Gather(mode=mode, axis=axis)
        np.testing.assert_array_equal(
            evaluate(layer, [data, indices])[0], evaluate(layer, [data.copy(), indices.copy()])[0]
        )


REDUCTIONS = list(ScatterReduction)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_elements_agree_with_onnx_runtime_for_scatter(reduction, axis, dtype):
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
def test_tensors_agree_with_onnx_runtime_for_scatter(width):
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


def test_an_index_past_the_end_is_refused_for_scatter():
    with pytest.raises(ExecutionError, match="found 3"):
        evaluate(Scatter(mode=ScatterMode.ND), [random_array((3,)), np.array([[3]]), random_array((1,))])


@pytest.mark.parametrize("axis", [-1, 0, 1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_one_hot_agrees_with_onnx_runtime(axis, dtype):
    indices = np.array([[0, 2, -1], [5, -4, 3]], np.int64)
    values, depth = np.array([-1, 7], dtype), np.array(4, np.int64)
    (expected,) = onnx_runtime("OneHot", [indices, depth, values], axis=axis)
    (output,) = run(OneHot(axis=axis), indices, values, depth)
    assert output.dtype == expected.dtype
    np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, bool])
@pytest.mark.parametrize("shape", [(3, 4), (12,), (0, 2)])
def test_non_zero_agrees_with_onnx_runtime(dtype, shape):
    x = (np.arange(np.prod(shape)).reshape(shape) % 3).astype(dtype)
    (expected,) = onnx_runtime("NonZero", [x])
    (output,) = run(NonZero(indices_type=DataType.INT64), x)
    np.testing.assert_array_equal(output, expected)
    assert run(NonZero(), x)[0].dtype == np.int32


def test_narrow_types_and_negative_zeros_are_told_apart():
    x = np.array([0.0, -0.0, 1.0, np.nan], ml_dtypes.bfloat16)
    assert evaluate(NonZero(), [x])[0].tolist() == [[2, 3]]
