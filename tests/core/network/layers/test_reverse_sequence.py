"""Reverse sequence: shapes and refusals."""

from tests.core.network.layers.inferring import assert_refused, indices, shape_of, spec

from dryfit.network.data_types import DataType
from dryfit.network.layers.reverse_sequence import ReverseSequence
from dryfit.network.network import Network


def test_the_shape_stays():
    assert shape_of(ReverseSequence(), spec(-1, 3, 2), indices(3)) == (-1, 3, 2)


def test_axes_may_be_set_after_the_layer_was_added():
    network = Network()
    x, lengths = network.add_input("x", DataType.FLOAT, (2, 3)), network.add_input("n", DataType.INT32, (2,))
    layer = network.add_reverse_sequence(x, lengths)
    layer.batch_axis, layer.sequence_axis = 0, 1
    assert layer.get_output(0).shape == (2, 3)


def test_what_does_not_fit_is_refused():
    assert_refused(ReverseSequence(), [spec(2), indices(2)], "`batch_axis` is not an axis", found=1, allowed="0 to 0")
    assert_refused(ReverseSequence(sequence_axis=1), [spec(2, 3), indices(3)], "different axes", found=1)
    assert_refused(ReverseSequence(), [spec(2, 3), indices(2)], "batch and the number", found="3 and 2")
    assert_refused(ReverseSequence(), [spec(2, 3), indices(3, 1)], "vector", found=(3, 1))
    assert_refused(ReverseSequence(), [spec(2, 3), spec(3)], "wrong type", found="FLOAT")
