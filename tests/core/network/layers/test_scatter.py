"""Scatter: shapes and refusals."""

import pytest
from tests.core.network.layers.inferring import assert_refused, indices, shape_of, spec

from dryfit.network.data_types import DataType
from dryfit.network.layers.scatter import Scatter, ScatterMode, ScatterReduction


def test_the_output_has_the_datas_shape():
    assert shape_of(Scatter(mode=ScatterMode.ELEMENT, axis=1), spec(2, 3), indices(1, 2), spec(1, -1)) == (2, 3)
    assert shape_of(Scatter(mode=ScatterMode.ND), spec(2, 3), indices(5, 1), spec(5, 3)) == (2, 3)


def test_what_does_not_fit_is_refused():
    element, nd = Scatter(mode=ScatterMode.ELEMENT, axis=1), Scatter(mode=ScatterMode.ND)
    data = spec(2, 3)
    assert_refused(element, [data, indices(1, 2), spec(1, 3)], "axis 1 of updates and indices", found="3 and 2")
    assert_refused(element, [data, indices(2), spec(2)], "equal ranks")
    assert_refused(element, [data, indices(1, 1), spec(1, 1, dtype=DataType.HALF)], "one type", found="FLOAT and HALF")
    assert_refused(element, [data, spec(1, 1), spec(1, 1)], "wrong type", found="FLOAT")
    assert_refused(nd, [data, indices(5, 3), spec(5)], "at most one", allowed="0 to 2 on the last axis")
    assert_refused(nd, [data, indices(5, 1), spec(5)], "do not fit", found=(5,), allowed=(5, 3))
    assert_refused(Scatter(mode=ScatterMode.ELEMENT, axis=2), [data, indices(1, 1), spec(1, 1)], "not an axis", found=2)


@pytest.mark.parametrize("reduction", ScatterReduction)
def test_only_replacing_is_a_devices_affair(reduction):
    assert Scatter(mode=ScatterMode.ND, reduction=reduction).is_host_only == (reduction is not ScatterReduction.NONE)
