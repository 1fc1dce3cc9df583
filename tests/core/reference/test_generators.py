"""The references of constants, fills and shapes."""

from __future__ import annotations

import numpy as np
import pytest

from dryfit.network.data_types import DataType
from dryfit.network.layers.generators import Constant, Fill, FillOperation, ShapeLayer
from dryfit.reference.registry import evaluate

from .oracle import onnx_runtime, random_array, run


def test_constant_is_the_weights_in_their_shape_and_no_copy():
    weights = np.arange(6, dtype=np.float32)
    (output,) = run(Constant(shape=(2, 3), weights=weights))
    np.testing.assert_array_equal(output, [[0, 1, 2], [3, 4, 5]])
    assert np.shares_memory(output, weights)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64, np.float64])
@pytest.mark.parametrize(("start", "limit", "delta"), [(0, 10, 3), (7, -8, -2), (2, 2, 1)])
def test_a_linspace_agrees_with_onnx_runtime(dtype, start, limit, delta):
    (expected,) = onnx_runtime("Range", [np.asarray(v, dtype) for v in (start, limit, delta)])
    shape = (max(-(-(limit - start) // delta), 0),)
    to_type = DataType.from_numpy(np.dtype(dtype))
    (output,) = run(Fill(shape=shape, operation=FillOperation.LINSPACE, alpha=start, beta=delta, to_type=to_type))
    np.testing.assert_array_equal(output, expected)
    layer = Fill(operation=FillOperation.LINSPACE, to_type=to_type)
    inputs = [np.array(shape), np.asarray(start, dtype), np.asarray(delta, dtype)]
    np.testing.assert_array_equal(evaluate(layer, inputs)[0], expected)


def test_large_integers_are_exact():
    (output,) = run(Fill(shape=(2,), operation=FillOperation.LINSPACE, alpha=2**53 + 1, beta=1, to_type=DataType.INT64))
    assert output.tolist() == [2**53 + 1, 2**53 + 2]


def test_a_linspace_of_several_axes_has_one_step_an_axis():
    inputs = [np.array([2, 3]), np.float32(1), np.array([10, 0.5], np.float32)]
    output = evaluate(Fill(operation=FillOperation.LINSPACE), inputs)[0]
    np.testing.assert_array_equal(output, [[1, 1.5, 2], [11, 11.5, 12]])


@pytest.mark.parametrize("dtype", [DataType.FLOAT, DataType.HALF])
def test_random_numbers_have_the_stated_distribution_and_follow_from_the_seed(dtype):
    def numbers(operation, seed):
        (output,) = run(Fill(shape=(100, 1000), operation=operation, alpha=2, beta=6, to_type=dtype, seed=seed))
        return output

    uniform = numbers(FillOperation.RANDOM_UNIFORM, 1).astype(np.float64)
    assert uniform.min() >= 2
    assert uniform.max() <= 6
    assert abs(uniform.mean() - 4) < 0.02
    normal = numbers(FillOperation.RANDOM_NORMAL, 1).astype(np.float64)
    assert abs(normal.mean() - 2) < 0.1
    assert abs(normal.std() - 6) < 0.1
    np.testing.assert_array_equal(normal, numbers(FillOperation.RANDOM_NORMAL, 1))
    assert (normal != numbers(FillOperation.RANDOM_NORMAL, 2)).mean() > 0.9


@pytest.mark.parametrize("shape", [(2, 3, 4), (0, 5), ()])
def test_shape_agrees_with_onnx_runtime(shape):
    x = random_array(shape)
    (expected,) = onnx_runtime("Shape", [x])
    (output,) = run(ShapeLayer(), x)
    assert output.dtype == expected.dtype
    np.testing.assert_array_equal(output, expected)
