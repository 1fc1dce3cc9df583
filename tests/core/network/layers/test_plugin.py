"""Plugin layers and their registry."""

import pytest

from dryfit.errors import NetworkError, PluginError
from dryfit.network.data_types import DataType
from dryfit.network.layers import plugin as plugins
from dryfit.network.layers.plugin import layer_plugin, register_layer_plugin
from dryfit.network.network import Network
from dryfit.network.tensor import TensorSpec


class Halved:
    """Halves the first axis."""

    def output_specs(self, fields, inputs):
        if fields.get("fault") == "odd":
            raise ValueError("the axis is odd")
        if fields.get("fault") == "text":
            return ["(2,)"]
        return [TensorSpec((inputs[0].shape[0] // 2,), inputs[0].dtype)]

    def enqueue(self, fields, inputs):
        return [inputs[0][::2]]


@pytest.fixture(autouse=True)
def _empty_registry(monkeypatch):
    monkeypatch.setattr(plugins, "_PLUGINS", {})
    monkeypatch.setattr(plugins, "find_layer_plugin", None)


def _input():
    network = Network()
    return network, network.add_input("x", DataType.FLOAT, (4,))


def test_a_registered_plugin_says_the_shape():
    register_layer_plugin("Halved", Halved(), namespace="mine", version="2")
    network, x = _input()
    layer = network.add_plugin([x], "Halved", {"a": 1}, plugin_version="2", plugin_namespace="mine")
    assert layer.get_output(0).shape == (2,)
    assert layer.layer_type == "PLUGIN_V3"
    assert layer.fields == {"a": 1}


def test_a_plugin_that_is_missing_is_answered_with_those_that_are_there():
    register_layer_plugin("Halved", Halved(), namespace="mine")
    network, x = _input()
    with pytest.raises(PluginError) as caught:
        network.add_plugin([x], "Halved")
    assert caught.value.found == "Halved version 1"
    assert caught.value.allowed == "mine::Halved version 1"
    assert "[Plugin_V3]" in caught.value.where
    assert len(network) == 0


def test_a_loader_is_asked_once_for_what_is_not_registered(monkeypatch):
    asked = []

    def find(*key):
        asked.append(key)
        return Halved() if key[0] == "Halved" else None

    monkeypatch.setattr(plugins, "find_layer_plugin", find)
    assert layer_plugin("Halved") is layer_plugin("Halved")
    assert asked == [("Halved", "1", "")]
    with pytest.raises(PluginError, match="found Other version 3"):
        layer_plugin("Other", "3")


def test_two_plugins_of_one_name_and_things_that_are_none_are_refused():
    plugin = Halved()
    register_layer_plugin("Halved", plugin)
    register_layer_plugin("Halved", plugin)
    with pytest.raises(PluginError, match="Two layer plugins"):
        register_layer_plugin("Halved", Halved())
    with pytest.raises(PluginError, match="found int"):
        register_layer_plugin("Number", 3)


@pytest.mark.parametrize(("fault", "text"), [("odd", "the axis is odd"), ("text", "returns tensor specs")])
def test_what_a_plugin_refuses_is_told_with_the_layers_name(fault, text):
    register_layer_plugin("Halved", Halved())
    network, x = _input()
    with pytest.raises(NetworkError, match=text) as caught:
        network.add_plugin([x], "Halved", {"fault": fault})
    assert "(plugin)" in caught.value.where
