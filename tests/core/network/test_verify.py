"""All problems of a network are found at once."""

import numpy as np
import pytest
from hypothesis import given
from tests.core.network.random_networks import networks

from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.network import Network
from dryfit.network.verify import check, verify


def _network(outputs=True):
    network = Network("net")
    x = network.add_input("x", DataType.FLOAT, (1, 3, 4, 4))
    relu = network.add_activation(x, ActivationType.RELU)
    if outputs:
        network.mark_output(relu.get_output(0))
    return network, relu.get_output(0)


@given(networks(dynamic=True))
def test_a_good_network_has_no_problem(built):
    assert verify(built[0]) == []
    check(built[0])


def test_an_input_that_nothing_uses_is_no_problem():
    network, _ = _network()
    network.add_input("spare", DataType.INT8, (1,))
    assert verify(network) == []


def test_a_network_without_outputs_is_refused():
    network, _ = _network(outputs=False)
    with pytest.raises(NetworkError, match="no output") as caught:
        check(network)
    assert caught.value.where == "network 'net'"
    assert "mark_output" in caught.value.remedy


def test_names_that_were_set_past_the_network_are_compared():
    network, y = _network()
    y.__dict__["name"] = "x"
    assert [(problem.rule, problem.found) for problem in verify(network)] == [("network.names", "x")]


def test_weights_that_are_no_numbers_are_counted():
    network, y = _network()
    kernel = np.zeros((2, 3, 1, 1), np.float16)
    kernel[0, 1], kernel[1, 2] = np.nan, np.inf
    conv = network.add_convolution_nd(y, 2, (1, 1), kernel)
    network.rename_layer(conv, "conv")
    (problem,) = verify(network)
    assert problem.rule == "layer.weights"
    assert problem.where == "layer 'conv' (convolution), kernel"
    assert problem.found == "2 of 6, such as nan"


def test_a_kernel_that_is_neither_a_parameter_nor_an_input_is_missed():
    network, y = _network()
    conv = network.add_convolution_nd(y, 2, (1, 1))
    assert [(problem.rule, problem.message) for problem in verify(network)] == [
        ("layer.weights", "The layer has no kernel")
    ]
    conv.set_input(1, network.add_constant((2, 3, 1, 1), np.ones((2, 3, 1, 1), np.float32)).get_output(0))
    assert verify(network) == []


def test_a_constant_may_be_infinite():
    network, y = _network()
    mask = network.add_constant((1, 1, 1, 1), np.full((1, 1, 1, 1), -np.inf, np.float32)).get_output(0)
    network.add_elementwise(y, mask, ElementWiseOperation.SUM)
    assert verify(network) == []


def test_a_layer_that_does_not_fit_is_told_once_and_what_follows_from_it_is_not():
    network, y = _network()
    shuffle = network.add_shuffle(y)
    network.rename_layer(shuffle, "bad")
    network.add_activation(shuffle.get_output(0), ActivationType.RELU)
    shuffle.reshape_dims = (5, 5)
    (problem,) = verify(network)
    assert (problem.rule, problem.found) == ("layer.parameters", "(1, 3, 4, 4) to (5, 5)")
    assert "'bad'" in problem.where


def test_an_input_that_was_taken_away_and_a_parameter_never_set_are_both_told():
    network, y = _network()
    z = network.add_input("z", DataType.FLOAT, (2, 3))
    scale = network.add_constant((3,), np.ones(3, np.float32)).get_output(0)
    network.rename_layer(network.add_quantize(z, scale), "q")
    network[0].set_input(0, None)
    with pytest.raises(NetworkError) as caught:
        check(network)
    text = str(caught.value)
    assert text.startswith("network 'net': 2 problems:")
    assert "Input 0 is not connected" in text
    assert "layer 'q' (quantize): `axis` must be set for a per-channel scale" in text
    assert y.consumers == []


def test_dimensions_of_one_name_have_one_extent():
    network, _ = _network()
    network.tensor("x").set_dimension_name(0, "batch")
    other = network.add_input("other", DataType.FLOAT, (2,))
    other.set_dimension_name(0, "batch")
    other.set_dimension_name(3, "lost")
    found = [(problem.found, problem.allowed) for problem in verify(network)]
    assert found == [(2, "1, the value in input 'x'"), (3, None)]


def test_a_cycle_is_told():
    network, y = _network()
    second = network.add_activation(y, ActivationType.RELU)
    network[0].set_input(0, second.get_output(0))
    assert [problem.rule for problem in verify(network)] == ["network.order"]
