import numpy as np
import pytest

from dryfit.network.data_types import DataType
from dryfit.network.layers.nms import BoundingBoxFormat, Nms

from .oracle import onnx_runtime, random_array, run


def scalar(value, dtype=np.float32):
    return np.array(value, dtype)


def random_boxes(batch, count):
    corners = np.abs(random_array((batch, count, 2, 2))) * 10
    return corners.reshape(batch, count, 4)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("overlap", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("threshold", [0.0, 0.2])
@pytest.mark.parametrize("most", [2, 100])
def test_it_agrees_with_onnx_runtime(center, overlap, threshold, most):
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
