"""Select: shapes and refusals."""

from tests.core.network.layers.inferring import assert_refused, shape_of, spec

from dryfit.network.data_types import DataType
from dryfit.network.layers.select import Select


def test_the_three_inputs_are_broadcast():
    condition = spec(2, 1, dtype=DataType.BOOL)
    assert shape_of(Select(), condition, spec(1, 3), spec(1, 1)) == (2, 3)
    assert shape_of(Select(), condition, spec(-1, 3), spec(2, -1)) == (2, 3)


def test_what_does_not_fit_is_refused():
    condition = spec(2, dtype=DataType.BOOL)
    assert_refused(Select(), [spec(2), spec(2), spec(2)], "wrong type", found="FLOAT", allowed="BOOL")
    assert_refused(Select(), [condition, spec(2), spec(2, dtype=DataType.INT8)], "one type", found="FLOAT and INT8")
    assert_refused(Select(), [condition, spec(2), spec(3)], "extents")
    assert_refused(Select(), [condition, spec(2), spec(1, 2)], "equal ranks")
