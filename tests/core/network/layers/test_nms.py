import pytest

from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layers.nms import BoundingBoxFormat, Nms
from dryfit.network.tensor import TensorSpec

from .building import network_with


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
        ((1, 10, 4), (1, 10, 3), (2,), r"number of boxes, is one number.*found \(2,\)"),
    ],
)
def test_what_does_not_fit_is_refused_with_both_values(boxes, scores, most, message):
    specs = [TensorSpec(shape, DataType.FLOAT) for shape in (boxes, scores)]
    with pytest.raises(NetworkError, match=message):
        Nms().infer_outputs([*specs, TensorSpec(most, DataType.INT32)])
