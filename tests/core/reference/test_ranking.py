"""The references of top-k and non-maximum suppression, held against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layers.ranking import BoundingBoxFormat, Nms, TopK, TopKOperation
from dryfit.reference.registry import evaluate

from .oracle import onnx_runtime, random_array, run


@given(
    shape=st.tuples(*[st.integers(1, 6)] * 3),
    axis=st.integers(0, 2),
    is_maximum=st.booleans(),
    dtype=st.sampled_from([np.float32, np.int64, np.int32]),
    data=st.data(),
)
def test_values_and_indices_agree_with_onnx_runtime_on_equal_elements_too(shape, axis, is_maximum, dtype, data):
    k = data.draw(st.integers(1, shape[axis]))
    x = np.random.default_rng(0).integers(-2, 3, shape).astype(dtype)
    expected, indices = onnx_runtime("TopK", [x, np.array([k])], outputs=2, axis=axis, largest=int(is_maximum))
    op = TopKOperation.MAX if is_maximum else TopKOperation.MIN
    values, places = run(TopK(op=op, k=k, axes=1 << axis, indices_type=DataType.INT64), x)
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(places, indices)


@pytest.mark.parametrize(("operator", "op"), [("ArgMax", TopKOperation.MAX), ("ArgMin", TopKOperation.MIN)])
def test_the_first_one_is_the_argument_of_onnx_runtime(operator, op):
    x = np.random.default_rng(0).integers(0, 3, (5, 6)).astype(np.float32)
    (expected,) = onnx_runtime(operator, [x], axis=1)
    np.testing.assert_array_equal(run(TopK(op=op, k=1, axes=2), x)[1], expected)


def test_k_may_be_an_input():
    x = random_array((3, 8))
    fixed = run(TopK(op=TopKOperation.MAX, k=3, axes=2), x)
    given_later = run(TopK(op=TopKOperation.MAX, k=0, axes=2), x, np.array([3]))
    for a, b in zip(fixed, given_later, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_k_past_the_axis_is_refused_with_both_numbers():
    layer = TopK(name="best", op=TopKOperation.MAX, k=0, axes=2)
    with pytest.raises(NetworkError, match=r"'best'.*found 9; allowed: 0 to 8"):
        evaluate(layer, [random_array((3, 8)), np.array(9)])


def test_extreme_integers_and_nan_are_ordered():
    lowest = np.array([0, -(2**63), 5, 2**63 - 1])
    assert run(TopK(op=TopKOperation.MAX, k=4, axes=1), lowest)[1].tolist() == [3, 2, 0, 1]
    x = np.array([1, np.nan, 2], np.float32)
    assert run(TopK(op=TopKOperation.MAX, k=2, axes=1), x)[1].tolist() == [1, 2]
    assert run(TopK(op=TopKOperation.MAX, k=1, axes=1), x)[1].tolist() == [1]
    assert run(TopK(op=TopKOperation.MIN, k=3, axes=1), x)[1].tolist() == [0, 2, 1]


def test_unsigned_and_fp16_elements_are_ordered():
    assert run(TopK(op=TopKOperation.MAX, k=2, axes=1), np.array([0, 255, 3], np.uint8))[0].tolist() == [255, 3]
    assert run(TopK(op=TopKOperation.MIN, k=2, axes=1), np.array([0, -2, 3], np.float16))[0].tolist() == [-2, 0]


def scalar(value, dtype=np.float32):
    return np.array(value, dtype)


def random_boxes(batch, count):
    corners = np.abs(random_array((batch, count, 2, 2))) * 10
    return corners.reshape(batch, count, 4)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("overlap", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("threshold", [0.0, 0.2])
@pytest.mark.parametrize("most", [2, 100])
def test_nms_agrees_with_onnx_runtime(center, overlap, threshold, most):
    boxes, scores = random_boxes(2, 30), random_array((2, 30, 3), seed=1)
    (expected,) = onnx_runtime(
        "NonMaxSuppression",
        [boxes, scores.swapaxes(1, 2), scalar([most], np.int64), scalar([overlap]), scalar([threshold])],
        center_point_box=int(center),
    )
    layer = Nms(
        bounding_box_format=BoundingBoxFormat.CENTER_SIZES if center else BoundingBoxFormat.CORNER_PAIRS,
        indices_type=DataType.INT64,
        topk_box_limit=None,
    )
    indices, count = run(layer, boxes, scores, scalar(most, np.int32), scalar(overlap), scalar(threshold))
    np.testing.assert_array_equal(indices, expected)
    assert count.item() == len(expected)


def test_corners_may_come_in_any_order():
    ordered = np.array([[[0, 0, 2, 2], [0.1, 0.1, 2, 2]]], np.float32)
    turned = ordered[..., [2, 3, 0, 1]]
    scores = np.array([[[0.5], [0.9]]], np.float32)
    for boxes in (ordered, turned):
        indices, _ = run(Nms(), boxes, scores, scalar(5, np.int32), scalar(0.5), scalar(0.0))
        assert indices.tolist() == [[0, 0, 1]]


def test_each_class_may_have_boxes_of_its_own():
    boxes = np.zeros((1, 2, 2, 4), np.float32)
    boxes[0, :, 0] = [[0, 0, 1, 1], [0, 0, 1, 1]]
    boxes[0, :, 1] = [[0, 0, 1, 1], [5, 5, 6, 6]]
    scores = np.array([[[0.9, 0.9], [0.8, 0.8]]], np.float32)
    indices, count = run(Nms(), boxes, scores, scalar(5, np.int32), scalar(0.5))
    assert indices.tolist() == [[0, 0, 0], [0, 1, 0], [0, 1, 1]]
    assert count.item() == 3


def test_only_the_boxes_within_the_limit_are_looked_at():
    boxes = np.array([[[i, 0, i + 0.5, 1] for i in range(4)]], np.float32)
    scores = np.array([[[0.1], [0.4], [0.3], [0.2]]], np.float32)
    layer = Nms(topk_box_limit=2)
    indices, _ = run(layer, boxes, scores, scalar(10, np.int32), scalar(0.5), scalar(0.0))
    assert indices[:, 2].tolist() == [1, 2]


def test_nothing_chosen_is_an_empty_table():
    indices, count = run(Nms(), random_boxes(1, 3), np.zeros((1, 3, 1), np.float32), scalar(5, np.int32))
    assert (indices.shape, count.item()) == ((0, 3), 0)
