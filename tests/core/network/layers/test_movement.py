"""Shapes, types and checks of layers that move values."""

from __future__ import annotations

import pytest
from tests.core.network.layers.inferring import assert_refused, indices, known, shape_of, spec

from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layers.movement import Concatenation, Identity, ReverseSequence, Squeeze, Unsqueeze
from dryfit.network.network import Network

from .building import network_with


def test_extents_of_the_axis_add_up_and_others_are_merged():
    assert shape_of(Concatenation(axis=1), spec(2, 3), spec(-1, 4)) == (2, 7)
    assert shape_of(Concatenation(axis=1), spec(2, -1), spec(2, 4)) == (2, -1)
    assert shape_of(Concatenation(axis=0), spec(0), spec(3)) == (3,)


def test_what_does_not_fit_is_refused_for_concatenation():
    assert_refused(
        Concatenation(axis=2), [spec(2, 3)], "`axis` must be an axis of the input", found=2, allowed="0 to 1"
    )
    assert_refused(Concatenation(axis=-1), [spec(2, 3)], "`axis` must be an axis of the input", found=-1)
    assert_refused(
        Concatenation(), [spec()], "`axis` must be an axis of the input", allowed="no axis, as the input is a scalar"
    )
    assert_refused(
        Concatenation(axis=0),
        [spec(2, 3), spec(2, 4)],
        "The extents of the inputs along axis 1, which is not the concatenation axis, must be equal",
        found="3 and 4",
    )
    assert_refused(
        Concatenation(), [spec(2), spec(2, 3)], "The inputs must have the same rank", found="(2,) and (2, 3)"
    )
    assert_refused(
        Concatenation(),
        [spec(2), spec(2, dtype=DataType.HALF)],
        "All inputs must have the same type",
        found="FP32 and FP16",
    )
    assert_refused(Concatenation(), [spec(2), None], "Input 1 is not connected")
    assert_refused(Concatenation(), [], "Input 0 is not connected")


def test_the_builder_takes_the_third_axis_from_the_end_until_it_is_set():
    network = Network()
    a, b = (network.add_input(name, DataType.FLOAT, (1, 2, width, 4)) for name, width in (("a", 3), ("b", 5)))
    assert network.add_concatenation([a, a]).axis == 1
    layer = network.add_concatenation([a, b])
    layer.axis = 2
    assert layer.get_output(0).shape == (1, 2, 8, 4)


def test_identity_has_the_inputs_spec_and_value():
    assert shape_of(Identity(), spec(2, -1)) == (2, -1)
    assert Identity().infer_outputs([known(1, 2)])[0].value.tolist() == [1, 2]


def test_negative_counts_crop():
    network, x = network_with((-1, 3, 8, -1))
    layer = network.add_padding_nd(x, (1, 2), (-3, 0))
    assert (layer.pre_padding_nd, layer.post_padding_nd) == ((1, 2), (-3, 0))
    assert layer.get_output(0).shape == (-1, 3, 6, -1)


@pytest.mark.parametrize(
    ("pre", "post", "message"),
    [
        ((-4, 0), (-4, 0), "The crop removes the whole input"),
        ((-9, 0), (5, 0), "The crop removes the whole input"),
        ((1,), (1,), r"pre \(1,\), post \(1,\) for an input of \(1, 8, 8\); allowed: 2 values"),
    ],
)
def test_what_does_not_fit_is_refused_with_both_values(pre, post, message):
    network, x = network_with((1, 8, 8))
    with pytest.raises(NetworkError, match=message):
        network.add_padding_nd(x, pre, post)


def test_the_shape_stays():
    assert shape_of(ReverseSequence(), spec(-1, 3, 2), indices(3)) == (-1, 3, 2)


def test_axes_may_be_set_after_the_layer_was_added():
    network = Network()
    x, lengths = network.add_input("x", DataType.FLOAT, (2, 3)), network.add_input("n", DataType.INT32, (2,))
    layer = network.add_reverse_sequence(x, lengths)
    layer.batch_axis, layer.sequence_axis = 0, 1
    assert layer.get_output(0).shape == (2, 3)


def test_what_does_not_fit_is_refused_for_reverse_sequence():
    assert_refused(
        ReverseSequence(), [spec(2), indices(2)], "`batch_axis` must be an axis of the input", found=1, allowed="0 to 0"
    )
    assert_refused(
        ReverseSequence(sequence_axis=1),
        [spec(2, 3), indices(3)],
        "`batch_axis` and `sequence_axis` must be different",
        found=1,
    )
    assert_refused(ReverseSequence(), [spec(2, 3), indices(2)], "batch and the number", found="3 and 2")
    assert_refused(ReverseSequence(), [spec(2, 3), indices(3, 1)], "vector", found=(3, 1))
    assert_refused(ReverseSequence(), [spec(2, 3), spec(3)], "wrong type", found="FP32")


def test_the_named_axes_are_gone():
    assert shape_of(Squeeze(), spec(1, 2, 1), known(0, -1)) == (2,)
    assert shape_of(Squeeze(), spec(-1, 2), known(0)) == (2,)
    assert shape_of(Squeeze(), spec(1, 2), known()) == (1, 2)


def test_what_does_not_fit_is_refused_for_squeeze():
    assert_refused(Squeeze(), [spec(1, 2), known(1)], "extent 1", found="axes (1,) of (1, 2)")
    assert_refused(
        Squeeze(),
        [spec(1, 2), known(0, -2)],
        "The axes must be distinct axes of the tensor",
        found=(0, -2),
        allowed="-2 to 1, each once",
    )
    assert_refused(Squeeze(), [spec(1, 2), known(2)], "The axes must be distinct axes of the tensor", found=(2,))
    assert_refused(Squeeze(), [spec(1, 2), indices(1)], "known at build time")
    assert_refused(Squeeze(), [spec(1, 2)], "Input 1 is not connected")


def test_axes_are_those_of_the_output():
    assert shape_of(Unsqueeze(), spec(2, -1), known(0, -1)) == (1, 2, -1, 1)
    assert shape_of(Unsqueeze(), spec(2), known(2, 1)) == (2, 1, 1)
    assert shape_of(Unsqueeze(), spec(), known(0)) == (1,)


def test_what_does_not_fit_is_refused_for_unsqueeze():
    assert_refused(
        Unsqueeze(),
        [spec(2), known(2)],
        "The axes must be distinct axes of the tensor",
        found=(2,),
        allowed="-2 to 1, each once",
    )
    assert_refused(Unsqueeze(), [spec(2), known(0, 0)], "The axes must be distinct axes of the tensor", found=(0, 0))
    assert_refused(Unsqueeze(), [spec(2), indices(1)], "known at build time")
