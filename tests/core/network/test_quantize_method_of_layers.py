"""The quantize method of a layer and of a network: copied with them, and kept in files."""

import pytest

from dryfit.errors import NetworkError
from dryfit.network.copying import copy_network
from dryfit.network.data_types import DataType
from dryfit.network.layer_copies import copy_layer
from dryfit.network.layers.activation import ActivationType
from dryfit.network.network import Network
from dryfit.network.serialization import network_from_dict, network_to_dict


def network():
    made = Network("methods")
    made.quantize_method = "tflite"
    x = made.add_input("x", DataType.FLOAT, (1, 2))
    layer = made.add_activation(x, ActivationType.RELU)
    layer.name, layer.quantize_method = "relu", "onnx"
    made.mark_output(layer.get_output(0))
    return made


def test_new_networks_and_layers_have_none():
    empty = Network()
    layer = empty.add_activation(empty.add_input("x", DataType.FLOAT, (1,)), ActivationType.RELU)
    assert empty.quantize_method == layer.quantize_method == ""


@pytest.mark.parametrize("make", [copy_network, lambda made: network_from_dict(*network_to_dict(made))])
def test_both_are_in_copies_and_in_files(make):
    made = make(network())
    assert made.quantize_method == "tflite"
    assert made.layers[0].quantize_method == "onnx"
    assert copy_layer(made.layers[0]).quantize_method == "onnx"


def test_it_is_no_parameter_of_a_kind_and_text():
    layer = network().layers[0]
    assert "quantize_method" not in [field.name for field in layer.parameters()]
    with pytest.raises(NetworkError, match="`quantize_method` has the wrong type"):
        layer.quantize_method = 7


def test_a_file_without_it_is_refused():
    data, arrays = network_to_dict(network())
    del data["layers"][0]["quantize_method"]
    with pytest.raises(NetworkError, match=r"found quantize_method"):
        network_from_dict(data, arrays)
