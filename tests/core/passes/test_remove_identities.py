"""Layers that change nothing are removed; those that matter stay."""

import numpy as np
import pytest

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.sample_mode import SampleMode
from dryfit.network.network import Network
from dryfit.passes.remove_identities import is_identity, remove_identities


def _network(shape=(2, 3, 4)):
    network = Network()
    return network, network.add_input("x", DataType.FLOAT, shape)


def _shuffle(network, x, **parameters):
    layer = network.add_shuffle(x)
    for name, value in parameters.items():
        setattr(layer, name, value)
    return layer


@pytest.mark.parametrize(
    ("parameters", "shape", "expected"),
    [
        ({}, (2, 3, 4), True),
        ({"reshape_dims": (2, 3, 4)}, (2, 3, 4), True),
        ({"reshape_dims": (0, -1, 4)}, (-1, 3, 4), True),
        ({"reshape_dims": (-1, 3, 0)}, (-1, 3, 4), True),
        ({"reshape_dims": (0, 3, -1)}, (-1, 3, -1), True),
        ({"reshape_dims": (2, 12)}, (2, 3, 4), False),
        ({"reshape_dims": (-1, 3, 4)}, (-1, 3, 5), False),
        ({"reshape_dims": (4, 3, 2)}, (2, 3, 4), False),
        ({"first_transpose": (0, 1, 2)}, (2, 3, 4), True),
        ({"first_transpose": (1, 0, 2)}, (2, 3, 4), False),
        ({"first_transpose": (1, 2, 0), "second_transpose": (2, 0, 1)}, (2, 3, 4), True),
        ({"first_transpose": (1, 0, 2), "reshape_dims": (3, 3, 4), "second_transpose": (1, 0, 2)}, (3, 3, 4), False),
        ({"reshape_dims": (0, 3), "zero_is_placeholder": False}, (0, 3), True),
    ],
)
def test_a_shuffle_is_an_identity_when_no_step_moves_or_reshapes_anything(parameters, shape, expected):
    network, x = _network(shape)
    assert is_identity(_shuffle(network, x, **parameters)) is expected


@pytest.mark.parametrize(
    ("shape", "parameters", "expected"),
    [
        ((2, 3), {"start": (0, 0), "shape": (2, 3), "stride": (1, 1)}, True),
        ((2, 3), {"start": (0, 0), "shape": (2, 2), "stride": (1, 1)}, False),
        ((2, 3), {"start": (1, 2), "shape": (2, 3), "stride": (-1, -1)}, False),
        ((-1, 3), {"start": (0,), "shape": (3,), "stride": (1,), "axes": (1,)}, True),
        ((-1, 3), {"start": (0, 0), "shape": (2, 3), "stride": (1, 1), "mode": SampleMode.FILL}, False),
    ],
)
def test_a_slice_is_an_identity_when_it_takes_everything_in_order(shape, parameters, expected):
    network, x = _network(shape)
    layer = network.add_slice(x, (), (), ())
    for name, value in parameters.items():
        setattr(layer, name, value)
    assert is_identity(layer) is expected


def test_a_cast_to_another_type_and_a_stated_output_type_stay():
    network, x = _network()
    assert is_identity(network.add_cast(x, DataType.FLOAT))
    assert not is_identity(network.add_cast(x, DataType.HALF))
    typed = network.add_identity(x)
    typed.set_output_type(0, DataType.HALF)
    assert not is_identity(typed)


def test_a_chain_in_the_middle_disappears_and_leaves_its_origin_and_range():
    network, x = _network()
    relu = network.add_activation(x, ActivationType.RELU)
    relu.onnx_nodes = ("Relu_0",)
    first = network.add_identity(relu.get_output(0))
    first.onnx_nodes = ("Dropout_1",)
    first.get_output(0).set_dynamic_range(-1, 3)
    second = network.add_shuffle(first.get_output(0))
    tanh = network.add_activation(second.get_output(0), ActivationType.TANH)
    network.mark_output(tanh.get_output(0))
    assert remove_identities(network)
    assert [layer.kind for layer in network] == ["activation", "activation"]
    assert tanh.inputs == [relu.get_output(0)]
    assert relu.onnx_nodes == ("Relu_0", "Dropout_1")
    assert relu.get_output(0).dynamic_range == (-1, 3)


def test_an_output_keeps_its_name_when_its_layer_goes():
    network, x = _network()
    relu = network.add_activation(x, ActivationType.RELU)
    output = network.add_identity(relu.get_output(0)).get_output(0)
    network.rename_tensor(output, "y")
    network.mark_output(output)
    assert remove_identities(network)
    assert network.get_output(0) is relu.get_output(0)
    assert network.get_output(0).name == "y"
    assert network.tensor("y") is network.get_output(0)


def test_an_output_that_is_an_input_or_another_output_keeps_its_layer():
    network, x = _network()
    network.mark_output(network.add_identity(x).get_output(0))
    relu = network.add_activation(x, ActivationType.RELU).get_output(0)
    network.mark_output(relu)
    network.mark_output(network.add_identity(relu).get_output(0))
    assert not remove_identities(network)
    assert len({tensor.name for tensor in network.outputs}) == 3


def test_shapes_are_up_to_date_after_layers_before_them_went():
    network, x = _network((2, 6))
    constant = network.add_constant((2,), np.array([3, 4])).get_output(0)
    same = network.add_identity(constant).get_output(0)
    shuffle = network.add_shuffle(x)
    shuffle.set_input(1, same)
    network.mark_output(shuffle.get_output(0))
    remove_identities(network)
    assert shuffle.get_output(0).shape == (3, 4)
    constant.producer.weights = np.array([4, 3])
    assert shuffle.get_output(0).shape == (4, 3)
