"""Concatenation: shapes and refusals."""

from tests.core.network.layers.inferring import assert_refused, shape_of, spec

from dryfit.network.data_types import DataType
from dryfit.network.layers.concatenation import Concatenation
from dryfit.network.network import Network


def test_extents_of_the_axis_add_up_and_others_are_merged():
    assert shape_of(Concatenation(axis=1), spec(2, 3), spec(-1, 4)) == (2, 7)
    assert shape_of(Concatenation(axis=1), spec(2, -1), spec(2, 4)) == (2, -1)
    assert shape_of(Concatenation(axis=0), spec(0), spec(3)) == (3,)


def test_what_does_not_fit_is_refused():
    assert_refused(Concatenation(axis=2), [spec(2, 3)], "not an axis", found=2, allowed="0 to 1")
    assert_refused(Concatenation(axis=-1), [spec(2, 3)], "not an axis", found=-1)
    assert_refused(Concatenation(), [spec()], "not an axis", allowed="none: the input is a scalar")
    assert_refused(Concatenation(axis=0), [spec(2, 3), spec(2, 4)], "extents of axis 1", found="3 and 4")
    assert_refused(Concatenation(), [spec(2), spec(2, 3)], "equal ranks", found="(2,) and (2, 3)")
    assert_refused(Concatenation(), [spec(2), spec(2, dtype=DataType.HALF)], "one type", found="FLOAT and HALF")
    assert_refused(Concatenation(), [spec(2), None], "Input 1 is not connected")
    assert_refused(Concatenation(), [], "Input 0 is not connected")


def test_the_builder_takes_the_third_axis_from_the_end_until_it_is_set():
    network = Network()
    a, b = (network.add_input(name, DataType.FLOAT, (1, 2, width, 4)) for name, width in (("a", 3), ("b", 5)))
    assert network.add_concatenation([a, a]).axis == 1
    layer = network.add_concatenation([a, b])
    layer.axis = 2
    assert layer.get_output(0).shape == (1, 2, 8, 4)
