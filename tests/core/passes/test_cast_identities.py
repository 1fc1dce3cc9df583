"""Identities with an output type are casts, from the network to the engine."""

import numpy as np
import pytest

from dryfit.builder.builder import Builder
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.network.data_types import DataType
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.network import Network
from dryfit.passes.canonical import canonical_pipeline
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
