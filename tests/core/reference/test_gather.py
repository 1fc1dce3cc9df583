"""The reference of gathers, held against ONNX Runtime and against loops."""

import itertools

import numpy as np
import pytest

from dryfit.errors import ExecutionError
from dryfit.network.layers.gather import Gather, GatherMode
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
def test_elements_agree_with_onnx_runtime(axis):
    data = random_array((3, 4, 5))
    indices = np.random.default_rng(1).integers(-3, 3, (2, 3, 4))
    (expected,) = onnx_runtime("GatherElements", [data, indices], axis=axis)
    (output,) = run(Gather(mode=GatherMode.ELEMENT, axis=axis), data, indices)
    np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize(
    ("shared", "shape"), [(0, (2, 1)), (0, (2, 2, 3)), (0, (3,)), (1, (2, 3, 1)), (2, (2, 3, 1)), (1, (2, 2))]
)
def test_tensors_agree_with_onnx_runtime(shared, shape):
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
def test_an_index_past_the_end_is_refused(mode, index):
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
