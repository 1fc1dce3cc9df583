import numpy as np
import pytest

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.network import Network


def small_network():
    network = Network("small")
    x = network.add_input("x", DataType.FLOAT, (-1, 4, 8, 8))
    layer = network.add_convolution_nd(x, 4, (3, 3), np.zeros((4, 4, 3, 3), np.float32))
    network.mark_output(layer.get_output(0))
    return network, x, layer


CHANGES = {
    "a parameter": lambda network, x, layer: setattr(layer, "padding_nd", (1, 1)),
    "a new layer": lambda network, x, layer: network.add_activation(x, ActivationType.RELU),
    "a new input": lambda network, x, layer: network.add_input("y", DataType.FLOAT, (1,)),
    "the shape of an input": lambda network, x, layer: setattr(x, "shape", (2, 4, 8, 8)),
    "the name of a tensor": lambda network, x, layer: network.rename_tensor(x, "image"),
    "a connection": lambda network, x, layer: layer.set_input(0, x),
    "a removed layer": lambda network, x, layer: (network.unmark_output(layer.outputs[0]), network.remove_layer(layer)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_of_shapes_or_names_makes_the_revision_grow(change):
    network, x, layer = small_network()
    before = network.revision
    change(network, x, layer)
    assert network.revision > before


def test_looking_leaves_the_revision_alone():
    network, x, layer = small_network()
    layer.padding_nd = (1, 1)
    before = network.revision
    assert layer.get_output(0).shape == (-1, 4, 8, 8)
    assert network.tensor("x") is x
    assert network.revision == before
