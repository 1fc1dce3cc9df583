"""One-hot: shapes and refusals."""

from tests.core.network.layers.inferring import assert_refused, indices, scalar, shape_of, spec

from dryfit.network.data_types import DataType
from dryfit.network.layers.one_hot import OneHot


def test_the_depth_is_a_new_axis():
    assert shape_of(OneHot(), indices(2, -1), spec(2), scalar(4)) == (2, -1, 4)
    assert shape_of(OneHot(axis=1), indices(2, 3), spec(2), scalar(4)) == (2, 4, 3)
    assert shape_of(OneHot(axis=0), indices(2), spec(2), indices()) == (-1, 2)
    values = spec(2, dtype=DataType.INT8)
    assert OneHot().infer_outputs([indices(2), values, scalar(4)])[0].dtype is DataType.INT8


def test_what_does_not_fit_is_refused():
    assert_refused(OneHot(), [spec(2), spec(2), scalar(4)], "wrong type", found="FLOAT")
    assert_refused(OneHot(), [indices(2), spec(3), scalar(4)], "off and on", found=(3,))
    assert_refused(OneHot(), [indices(2), spec(2), scalar(0)], "at least 1", found=0)
    assert_refused(OneHot(), [indices(2), spec(2), indices(2)], "scalar", found=(2,))
    assert_refused(OneHot(axis=2), [indices(2), spec(2), scalar(4)], "different axes", found=(2,))
