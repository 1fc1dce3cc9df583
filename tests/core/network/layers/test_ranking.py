"""Shapes, types and checks of top-k and non-maximum suppression."""

from __future__ import annotations

import numpy as np
import pytest

from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layers.ranking import BoundingBoxFormat, Nms, TopK, TopKOperation
from dryfit.network.tensor import TensorSpec

from .building import network_with


def test_values_and_indices_have_k_elements_along_the_axis():
    network, x = network_with((-1, 8, 4), dtype=DataType.HALF)
    layer = network.add_topk(x, TopKOperation.MAX, 3, 0b10)
    assert layer.type == "TOPK"
    assert [(output.shape, output.dtype) for output in layer.outputs] == [
        ((-1, 3, 4), DataType.HALF),
        ((-1, 3, 4), DataType.INT32),
    ]
    wide = network.add_topk(x, TopKOperation.MIN, 1, 0b10, DataType.INT64)
    assert wide.get_output(1).dtype is DataType.INT64


def test_a_k_from_an_input_is_known_or_dynamic():
    layer, x = TopK(op=TopKOperation.MAX, k=0, axes=2), TensorSpec((2, 8), DataType.FLOAT)
    assert layer.infer_outputs([x, TensorSpec((), DataType.INT64)])[0].shape == (2, -1)
    assert layer.infer_outputs([x, TensorSpec.of(np.array([5]))])[0].shape == (2, 5)
    with pytest.raises(NetworkError, match="found 9; allowed: 0 to 8"):
        layer.infer_outputs([x, TensorSpec.of(np.array([9]))])
    with pytest.raises(NetworkError, match="2 numbers"):
        layer.infer_outputs([x, TensorSpec.of(np.array([1, 2]))])


@pytest.mark.parametrize(
    ("k", "axes", "indices_type", "message"),
    [
        (9, 2, DataType.INT32, "found 9; allowed: 1 to 8"),
        (-1, 2, DataType.INT32, "found -1; allowed: 1 to 8"),
        (1, 3, DataType.INT32, "found 0b11; allowed: one bit"),
        (1, 4, DataType.INT32, "found 0b100; allowed: bits 0 to 1"),
        (1, 2, DataType.FLOAT, "found FP32"),
    ],
)
def test_what_does_not_fit_is_refused_with_both_values_for_top_k(k, axes, indices_type, message):
    network, x = network_with((2, 8))
    with pytest.raises(NetworkError, match=message):
        network.add_topk(x, TopKOperation.MAX, k, axes, indices_type)


def test_parameters_have_tensorrts_names_and_defaults():
    network, boxes, scores, most = network_with(
        (1, 10, 4), (1, 10, 3), (), dtype=[DataType.FLOAT, DataType.FLOAT, DataType.INT32]
    )
    layer = network.add_nms(boxes, scores, most)
    assert (layer.bounding_box_format, layer.topk_box_limit) == (BoundingBoxFormat.CORNER_PAIRS, 5000)
    assert [(output.shape, output.dtype) for output in layer.outputs] == [
        ((-1, 3), DataType.INT32),
        ((), DataType.INT32),
    ]
    assert network.add_nms(boxes, scores, most, DataType.INT64).get_output(0).dtype is DataType.INT64


def test_no_limit_is_host_only():
    assert Nms(topk_box_limit=None).is_host_only
    assert not Nms().is_host_only


@pytest.mark.parametrize(
    ("boxes", "scores", "most", "message"),
    [
        ((1, 10, 5), (1, 10, 3), (), r"boxes \(1, 10, 5\), scores \(1, 10, 3\)"),
        ((1, 10, 4), (1, 3, 10), (), r"scores \(1, 3, 10\)"),
        ((1, 10, 2, 4), (1, 10, 3), (), r"boxes \(1, 10, 2, 4\)"),
        ((1, 10, 4), (10, 3), (), r"scores \(10, 3\)"),
        ((1, 10, 4), (1, 10, 3), (2,), r"number of boxes.*must be a scalar.*found \(2,\)"),
    ],
)
def test_what_does_not_fit_is_refused_with_both_values_for_nms(boxes, scores, most, message):
    specs = [TensorSpec(shape, DataType.FLOAT) for shape in (boxes, scores)]
    with pytest.raises(NetworkError, match=message):
        Nms().infer_outputs([*specs, TensorSpec(most, DataType.INT32)])
