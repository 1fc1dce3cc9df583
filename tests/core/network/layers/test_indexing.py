"""Shapes, types and checks of layers on indices."""

from __future__ import annotations

import pytest
from tests.core.network.layers.inferring import assert_refused, indices, scalar, shape_of, spec

from dryfit.network.data_types import DataType
from dryfit.network.layers.indexing import Gather, GatherMode, NonZero, OneHot, Scatter, ScatterMode, ScatterReduction
from dryfit.network.network import Network


def test_slices_take_the_place_of_the_axis():
    assert shape_of(Gather(axis=1), spec(2, 3, 4), indices(5, 6)) == (2, 5, 6, 4)
    assert shape_of(Gather(axis=1), spec(2, 3, 4), indices()) == (2, 4)
    assert shape_of(Gather(axis=0), spec(-1, 3), indices(-1)) == (-1, 3)
    assert shape_of(Gather(axis=2, num_elementwise_dims=1), spec(-1, 3, 4), indices(2, 5)) == (2, 3, 5)


def test_elements_have_the_shape_of_the_indices():
    assert shape_of(Gather(mode=GatherMode.ELEMENT, axis=1), spec(2, 3), indices(1, 9)) == (1, 9)


def test_vectors_pick_tensors():
    assert shape_of(Gather(mode=GatherMode.ND), spec(2, 3, 4), indices(5, 2)) == (5, 4)
    layer = Gather(mode=GatherMode.ND, num_elementwise_dims=1)
    assert shape_of(layer, spec(-1, 3, 4), indices(2, 5, 1)) == (2, 5, 4)


def test_what_does_not_fit_is_refused_for_gather():
    data = spec(2, 3)
    assert_refused(Gather(), [data, spec(2)], "wrong type", found="FP32", allowed="INT32 or INT64")
    assert_refused(Gather(axis=2), [data, indices(2)], "`axis` must be an axis of the input", found=2, allowed="0 to 1")
    element = GatherMode.ELEMENT
    assert_refused(
        Gather(mode=element), [data, indices(2)], "Data and indices must have the same rank", found="(2, 3) and (2,)"
    )
    assert_refused(
        Gather(mode=element),
        [data, indices(1, 4)],
        "must not be larger than the data along axis 1",
        found="(1, 4) into (2, 3)",
    )
    assert_refused(Gather(mode=element, num_elementwise_dims=1), [data, data], "wrong type")
    assert_refused(Gather(mode=GatherMode.ND), [data, indices(2, 3)], "at most one", allowed="0 to 2")
    assert_refused(
        Gather(mode=GatherMode.ND), [data, indices(2, -1)], "The last dimension of the indices must be static"
    )
    assert_refused(Gather(num_elementwise_dims=1), [data, indices(2, 2)], "after the elementwise", found=0)
    shared = Gather(axis=1, num_elementwise_dims=1)
    assert_refused(shared, [data, indices(3, 2)], "elementwise axis 0", found="2 and 3")
    assert_refused(
        Gather(axis=1, num_elementwise_dims=3),
        [data, indices(2)],
        "`num_elementwise_dims` must not exceed the rank of data or indices",
        allowed="0 to 1",
    )


def test_builders_set_axis_and_mode():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (2, 3))
    i = network.add_input("i", DataType.INT32, (1, 4))
    assert network.add_gather(x, i, 1).get_output(0).shape == (2, 1, 4)
    layer = network.add_gather_v2(x, i, GatherMode.ELEMENT)
    layer.axis = 1
    assert layer.get_output(0).shape == (1, 4)


def test_the_output_has_the_datas_shape():
    assert shape_of(Scatter(mode=ScatterMode.ELEMENT, axis=1), spec(2, 3), indices(1, 2), spec(1, -1)) == (2, 3)
    assert shape_of(Scatter(mode=ScatterMode.ND), spec(2, 3), indices(5, 1), spec(5, 3)) == (2, 3)


def test_what_does_not_fit_is_refused_for_scatter():
    element, nd = Scatter(mode=ScatterMode.ELEMENT, axis=1), Scatter(mode=ScatterMode.ND)
    data = spec(2, 3)
    assert_refused(element, [data, indices(1, 2), spec(1, 3)], "axis 1 of updates and indices", found="3 and 2")
    assert_refused(element, [data, indices(2), spec(2)], "Data and indices must have the same rank")
    assert_refused(
        element,
        [data, indices(1, 1), spec(1, 1, dtype=DataType.HALF)],
        "All inputs must have the same type",
        found="FP32 and FP16",
    )
    assert_refused(element, [data, spec(1, 1), spec(1, 1)], "wrong type", found="FP32")
    assert_refused(nd, [data, indices(5, 3), spec(5)], "at most one", allowed="0 to 2 on the last axis")
    assert_refused(
        nd,
        [data, indices(5, 1), spec(5)],
        "shape of the updates must match data and indices",
        found=(5,),
        allowed=(5, 3),
    )
    assert_refused(
        Scatter(mode=ScatterMode.ELEMENT, axis=2),
        [data, indices(1, 1), spec(1, 1)],
        "`axis` must be an axis of the input",
        found=2,
    )


@pytest.mark.parametrize("reduction", ScatterReduction)
def test_only_replacing_is_a_devices_affair(reduction):
    assert Scatter(mode=ScatterMode.ND, reduction=reduction).is_host_only == (reduction is not ScatterReduction.NONE)


def test_the_depth_is_a_new_axis():
    assert shape_of(OneHot(), indices(2, -1), spec(2), scalar(4)) == (2, -1, 4)
    assert shape_of(OneHot(axis=1), indices(2, 3), spec(2), scalar(4)) == (2, 4, 3)
    assert shape_of(OneHot(axis=0), indices(2), spec(2), indices()) == (-1, 2)
    values = spec(2, dtype=DataType.INT8)
    assert OneHot().infer_outputs([indices(2), values, scalar(4)])[0].dtype is DataType.INT8


def test_what_does_not_fit_is_refused_for_one_hot():
    assert_refused(OneHot(), [spec(2), spec(2), scalar(4)], "wrong type", found="FP32")
    assert_refused(OneHot(), [indices(2), spec(3), scalar(4)], "off and on", found=(3,))
    assert_refused(OneHot(), [indices(2), spec(2), scalar(0)], "at least 1", found=0)
    assert_refused(OneHot(), [indices(2), spec(2), indices(2)], "scalar", found=(2,))
    assert_refused(
        OneHot(axis=2), [indices(2), spec(2), scalar(4)], "The axes must be distinct axes of the tensor", found=(2,)
    )


def test_the_number_of_indices_depends_on_the_data():
    assert shape_of(NonZero(), spec(2, 3)) == (2, -1)
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (2,))
    assert network.add_non_zero(x).get_output(0).dtype is DataType.INT32
    assert network.add_non_zero(x, DataType.INT64).get_output(0).dtype is DataType.INT64


def test_indices_of_another_type_are_refused():
    assert_refused(NonZero(indices_type=DataType.INT8), [spec(2)], "INT32 or INT64", found="INT8")
