"""Gather: shapes and refusals."""

from tests.core.network.layers.inferring import assert_refused, indices, shape_of, spec

from dryfit.network.data_types import DataType
from dryfit.network.layers.gather import Gather, GatherMode
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


def test_what_does_not_fit_is_refused():
    data = spec(2, 3)
    assert_refused(Gather(), [data, spec(2)], "wrong type", found="FLOAT", allowed="INT32 or INT64")
    assert_refused(Gather(axis=2), [data, indices(2)], "not an axis", found=2, allowed="0 to 1")
    element = GatherMode.ELEMENT
    assert_refused(Gather(mode=element), [data, indices(2)], "equal ranks", found="(2, 3) and (2,)")
    assert_refused(Gather(mode=element), [data, indices(1, 4)], "past axis 1", found="(1, 4) into (2, 3)")
    assert_refused(Gather(mode=element, num_elementwise_dims=1), [data, data], "wrong type")
    assert_refused(Gather(mode=GatherMode.ND), [data, indices(2, 3)], "at most one", allowed="0 to 2")
    assert_refused(Gather(mode=GatherMode.ND), [data, indices(2, -1)], "known extent")
    assert_refused(Gather(num_elementwise_dims=1), [data, indices(2, 2)], "after the elementwise", found=0)
    shared = Gather(axis=1, num_elementwise_dims=1)
    assert_refused(shared, [data, indices(3, 2)], "elementwise axis 0", found="2 and 3")
    assert_refused(Gather(axis=1, num_elementwise_dims=3), [data, indices(2)], "counts axes", allowed="0 to 1")


def test_builders_set_axis_and_mode():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (2, 3))
    i = network.add_input("i", DataType.INT32, (1, 4))
    assert network.add_gather(x, i, 1).get_output(0).shape == (2, 1, 4)
    layer = network.add_gather_v2(x, i, GatherMode.ELEMENT)
    layer.axis = 1
    assert layer.get_output(0).shape == (1, 4)
