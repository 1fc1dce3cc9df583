"""Copies of networks are equal and independent, and share their weights."""

import numpy as np
from hypothesis import given
from tests.core.network.random_networks import networks

from dryfit.network.copying import copy_network
from dryfit.network.data_types import DataType
from dryfit.network.layer_copies import copy_layer
from dryfit.network.network import Network
from dryfit.network.printing import network_text
from dryfit.network.serialization import network_to_dict


@given(networks(dynamic=True))
def test_a_copy_says_the_same_as_the_original(built):
    network, _ = built
    network.tensor("x").set_dynamic_range(-1, 1)
    network.tensor("x").set_dimension_name(0, "batch")
    network.metadata["key"] = "value"
    original, arrays = network_to_dict(network)
    again, shared = network_to_dict(copy_network(network))
    assert again == original
    assert all(shared[name] is arrays[name] for name in arrays)


def test_a_change_of_the_copy_does_not_reach_the_original():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (2, 3))
    layer = network.add_shuffle(x)
    network.mark_output(layer.get_output(0))
    before = network_text(network)
    copy = copy_network(network)
    copy[0].reshape_dims = (6,)
    copy[0].set_output_type(0, DataType.HALF)
    copy.rename_tensor(copy.tensor("x"), "z")
    copy.tensor("z").dimension_names[0] = "n"
    assert copy.get_output(0).shape == (6,)
    assert network_text(network) == before
    assert not x.dimension_names
    assert len(x.consumers) == 1


def test_a_copied_layer_belongs_to_no_network():
    network = Network()
    layer = network.add_constant((2,), np.ones(2, np.float32))
    copy = copy_layer(layer)
    assert copy.network is None
    assert not copy.outputs
    assert copy.weights is layer.weights
    assert copy.name == layer.name
