"""The text of a network is short, complete and always the same."""

import numpy as np
from hypothesis import given
from tests.core.network.random_networks import networks

from dryfit.network.copying import copy_network
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.network import Network
from dryfit.network.printing import network_text


def test_each_layer_is_a_line_with_what_differs_from_the_default():
    network = Network("net")
    x = network.add_input("x", DataType.FLOAT, (-1, 3, 8, 8))
    conv = network.add_convolution_nd(x, 4, (3, 3), np.zeros((4, 3, 3, 3), np.float32))
    network.rename_layer(conv, "conv1")
    conv.precision = DataType.HALF
    relu = network.add_activation(conv.get_output(0), ActivationType.LEAKY_RELU)
    network.rename_layer(relu, "my relu")
    relu.alpha = 0.1
    network.rename_tensor(relu.get_output(0), 'say "y"\n')
    small = network.add_constant((2,), np.array([1, 2], np.int64))
    network.rename_layer(small, "pair")
    network.mark_output(relu.get_output(0))
    name = conv.get_output(0).name
    assert network_text(network).split("\n") == [
        "network net",
        "input x: FLOAT[-1, 3, 8, 8]",
        (
            f'conv1: "{name}" FLOAT[-1, 4, 6, 6] = convolution(x; num_output_maps=4, kernel_size_nd=(3, 3), '
            "stride_nd=(1, 1), dilation_nd=(1, 1), pre_padding=(0, 0), post_padding=(0, 0), kernel=FLOAT[4, 3, 3, 3], "
            "precision=HALF)"
        ),
        f'"my relu": "say \\"y\\"\\n" FLOAT[-1, 4, 6, 6] = activation("{name}"; activation_type=LEAKY_RELU, alpha=0.1)',
        f'pair: "{small.get_output(0).name}" INT64[2] = constant(shape=(2), weights=INT64[2]{{1, 2}})',
        'output "say \\"y\\"\\n"',
    ]


def test_a_network_prints_as_its_text():
    network = Network("net")
    network.mark_output(network.add_input("x", DataType.FLOAT, (1,)))
    assert str(network) == network_text(network)


def test_an_absent_input_leaves_a_dash():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (3,))
    layer = network.add_slice(x, (0,), (2,), (1,))
    layer.set_input(4, network.add_constant((), np.zeros((), np.float32)).get_output(0))
    assert "slice(x, -, -, -, " in network_text(network)


@given(networks())
def test_equal_networks_have_equal_texts(built):
    network, _ = built
    text = network_text(network)
    assert text == network_text(network) == network_text(copy_network(network))
    assert len(text.split("\n")) == 1 + network.num_inputs + network.num_layers + network.num_outputs


def test_layers_tensors_and_networks_are_short_in_a_notebook():
    network = Network("net")
    x = network.add_input("x", DataType.FLOAT, (-1, 3, 8, 8))
    conv = network.add_convolution_nd(x, 4, (3, 3), np.zeros((4, 3, 3, 3), np.float32))
    conv.metadata = "text " * 100
    network.mark_output(conv.get_output(0))
    assert repr(x) == "<Tensor 'x': FLOAT (-1, 3, 8, 8)>"
    assert repr(network).startswith("<Network 'net': 'x' -> ")
    assert repr(conv).startswith("Convolution('(Unnamed Layer* 0) [Convolution]', num_output_maps=4, ")
    assert "FLOAT[4, 3, 3, 3]" in repr(conv)
    assert len(repr(conv)) < 220
