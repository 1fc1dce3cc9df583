"""Layers that change nothing go; identities that change the type become casts."""

from __future__ import annotations

import numpy as np
import pytest

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.building import Builder
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.slice import SampleMode
from dryfit.network.network import Network
from dryfit.passes.canonical import canonical_pipeline
from dryfit.passes.simplify import is_identity, remove_identities
from dryfit.reference.executor import run_reference


def comparison(to_type):
    network = Network()
    x, y = (network.add_input(name, DataType.FLOAT, (2, 3)) for name in "xy")
    greater = network.add_elementwise(x, y, ElementWiseOperation.GREATER)
    identity = network.add_identity(greater.get_output(0))
    identity.name = "typed"
    identity.set_output_type(0, to_type)
    network.mark_output(identity.get_output(0))
    return network, identity


def test_the_type_that_is_asked_for_is_the_tensor_s():
    _, identity = comparison(DataType.HALF)
    assert identity.get_output_type(0) is identity.get_output(0).dtype is DataType.HALF
    identity.reset_output_type(0)
    assert identity.get_output_type(0) is identity.get_output(0).dtype is DataType.BOOL


@pytest.mark.parametrize("to_type", [DataType.HALF, DataType.FLOAT, DataType.INT32, DataType.INT8])
def test_an_engine_gives_the_type_and_the_values(to_type):
    network, identity = comparison(to_type)
    name = identity.get_output(0).name
    feeds = {"x": np.array([[1, 2, 3], [4, 5, 6]], np.float32), "y": np.full((2, 3), 3, np.float32)}
    expected = run_reference(network, feeds)[name]
    engine = Builder().build_engine(network, BuilderConfig())
    (found,) = engine.create_execution_context().run(feeds).values()
    assert found.dtype == expected.dtype == to_type.numpy
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(expected.astype(int), [[0, 0, 0], [1, 1, 1]])


def test_the_cast_has_the_identity_s_names():
    network, identity = comparison(DataType.HALF)
    identity.precision = DataType.HALF
    name = identity.get_output(0).name
    canonical_pipeline().run(network)
    assert (network.layer("typed").kind, network.layer("typed").precision) == ("cast", DataType.HALF)
    assert network.tensor(name) is network.outputs[0]


def test_real_numbers_are_still_only_stored_in_the_type():
    network = Network()
    identity = network.add_identity(network.add_input("x", DataType.FLOAT, (2,)))
    identity.set_output_type(0, DataType.HALF)
    assert identity.get_output(0).dtype is DataType.FLOAT


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
