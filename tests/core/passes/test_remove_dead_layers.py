"""What no output needs goes; everything else stays."""

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.top_k import TopKOperation
from dryfit.network.network import Network
from dryfit.passes.remove_dead_layers import remove_dead_layers


def _network():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (2, 8))
    network.add_input("spare", DataType.FLOAT, (1,))
    used = network.add_activation(x, ActivationType.RELU).get_output(0)
    dead = network.add_activation(used, ActivationType.TANH).get_output(0)
    network.add_activation(dead, ActivationType.TANH)
    return network, used


def test_dead_chains_are_removed_and_inputs_stay():
    network, used = _network()
    network.mark_output(used)
    assert remove_dead_layers(network)
    assert [layer.get_output(0) for layer in network] == [used]
    assert [tensor.name for tensor in network.inputs] == ["x", "spare"]
    assert used.consumers == []
    assert not remove_dead_layers(network)


def test_a_layer_with_one_used_output_stays():
    network, used = _network()
    top = network.add_topk(used, TopKOperation.MAX, 2, 0b10)
    network.mark_output(top.get_output(1))
    remove_dead_layers(network)
    assert [layer.kind for layer in network] == ["activation", "top_k"]


def test_without_outputs_nothing_is_removed():
    network, _ = _network()
    assert not remove_dead_layers(network)
    assert len(network) == 3
