"""The references of reductions and running sums, held against ONNX Runtime."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dryfit.errors import NetworkError
from dryfit.network.layers.reduction import Cumulative, CumulativeOperation, Reduce, ReduceOperation
from dryfit.network.layers.shape_inference import mask_of
from dryfit.reference.registry import evaluate

from .oracle import onnx_runtime, random_array, run

Op = ReduceOperation
OPERATORS = {
    Op.SUM: "ReduceSum",
    Op.PROD: "ReduceProd",
    Op.MAX: "ReduceMax",
    Op.MIN: "ReduceMin",
    Op.AVG: "ReduceMean",
}
AXES = [axes for count in (1, 2, 3) for axes in itertools.combinations(range(3), count)]


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize(("op", "operator"), OPERATORS.items(), ids=[op.name for op in OPERATORS])
def test_reduce_agrees_with_onnx_runtime(op, operator, keep, axes):
    x = random_array((3, 4, 5))
    (expected,) = onnx_runtime(operator, [x, np.array(axes)], keepdims=int(keep), opset=18)
    (y,) = run(Reduce(op=op, axes=mask_of(axes), keep_dims=keep), x)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


# ONNX Runtime has no ReduceMean of INT64.
INTEGER_CASES = [(op, dtype) for op in OPERATORS for dtype in (np.int32, np.int64) if (op, dtype) != (Op.AVG, np.int64)]


@pytest.mark.parametrize(("op", "dtype"), INTEGER_CASES)
def test_integers_agree_with_onnx_runtime(op, dtype):
    x = random_array((3, 7), dtype)
    (expected,) = onnx_runtime(OPERATORS[op], [x, np.array([1])], opset=18)
    np.testing.assert_array_equal(run(Reduce(op=op, axes=2, keep_dims=True), x)[0], expected)


def test_over_nothing_the_result_is_neutral():
    x = np.zeros((2, 0), np.float32)
    results = {op: run(Reduce(op=op, axes=2, keep_dims=False), x)[0].tolist() for op in OPERATORS}
    assert results[Op.SUM] == [0, 0]
    assert results[Op.PROD] == [1, 1]
    assert results[Op.MAX] == [-np.inf] * 2
    assert results[Op.MIN] == [np.inf] * 2
    assert np.isnan(results[Op.AVG]).all()
    lowest = run(Reduce(op=Op.MAX, axes=2, keep_dims=False), x.astype(np.int32))[0]
    assert lowest.tolist() == [-(2**31)] * 2


def test_the_maximum_of_bools_is_any_and_the_minimum_all():
    x = np.array([[True, False], [False, False], [True, True]])
    assert run(Reduce(op=Op.MAX, axes=2, keep_dims=False), x)[0].tolist() == [True, False, True]
    assert run(Reduce(op=Op.MIN, axes=2, keep_dims=False), x)[0].tolist() == [False, False, True]


def test_nan_wins():
    x = np.array([[1, np.nan, 2]], np.float32)
    for op in OPERATORS:
        assert np.isnan(run(Reduce(op=op, axes=2, keep_dims=False), x)[0]).all()


def test_fp16_sums_do_not_overflow():
    x = np.full((64,), 60000, np.float16)
    assert run(Reduce(op=Op.AVG, axes=1, keep_dims=False), x)[0].item() == np.float16(60000)
    assert run(Reduce(op=Op.SUM, axes=1, keep_dims=False), np.full((3000,), 1, np.float16))[0].item() == 3000


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_sums_agree_with_onnx_runtime(axis, exclusive, reverse, dtype):
    x = random_array((3, 4, 5), dtype)
    (expected,) = onnx_runtime("CumSum", [x, np.array(axis)], exclusive=int(exclusive), reverse=int(reverse))
    (y,) = run(Cumulative(exclusive=exclusive, reverse=reverse), x, np.array(axis))
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("exclusive", "reverse", "expected"),
    [
        (False, False, [2, 6, 24]),
        (True, False, [1, 2, 6]),
        (False, True, [24, 12, 4]),
        (True, True, [12, 4, 1]),
    ],
)
def test_products_are_those_of_the_elements_counted(exclusive, reverse, expected):
    layer = Cumulative(op=CumulativeOperation.PROD, exclusive=exclusive, reverse=reverse)
    assert run(layer, np.array([2, 3, 4], np.float32), np.array([0]))[0].tolist() == expected


def test_an_axis_that_is_not_there_is_refused():
    with pytest.raises(NetworkError, match="found 2; allowed: -2 to 1"):
        evaluate(Cumulative(), [random_array((2, 2)), np.array(2)])


def test_fp16_sums_in_fp32_and_rounds_once():
    x = np.full((4096,), 1, np.float16)
    assert run(Cumulative(), x, np.array(0))[0][-1] == 4096
