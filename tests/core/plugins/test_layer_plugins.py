from importlib.metadata import EntryPoint

import numpy as np
import pytest

from dryfit.errors import PluginError
from dryfit.network.layers import plugin as plugin_layer
from dryfit.network.tensor import TensorSpec
from dryfit.plugins import layer_plugins
from dryfit.plugins.registry import LAYERS, PluginRegistry, failures


class Twice:
    """Doubles its input."""

    def output_specs(self, fields, inputs):
        return [TensorSpec(inputs[0].shape, inputs[0].dtype)]

    def enqueue(self, fields, inputs):
        return [np.add(inputs[0], inputs[0])]


class TwiceV2(Twice):
    """The same, as version 2."""

    plugin_version = "2"


class Entry(EntryPoint):
    """An entry point that names an object of this file."""

    def load(self):
        if self.value == "missing":
            raise ImportError("no such module")
        return {"instance": INSTANCE, "class": Twice, "second": SECOND, "string": "a string"}[self.value]


INSTANCE, SECOND = Twice(), TwiceV2()


def registry_of(**entries):
    made = [Entry(name.replace("__", "::"), value, LAYERS) for name, value in entries.items()]
    return PluginRegistry(lambda group: made if group == LAYERS else [], "")


@pytest.fixture(autouse=True)
def _clean_table(monkeypatch):
    monkeypatch.setattr(plugin_layer, "_PLUGINS", {})
    monkeypatch.setattr(plugin_layer, "find_layer_plugin", None)


def find(plugins, name, version="1", namespace=""):
    return layer_plugins.find_layer_plugin(name, version, namespace, plugins=plugins)


def test_a_plugin_is_found_by_the_name_of_its_entry_point():
    plugins = registry_of(Twice="instance", acme__Twice="class", Later="second")
    assert find(plugins, "Twice") is INSTANCE
    assert isinstance(find(plugins, "Twice", namespace="acme"), Twice)
    assert find(plugins, "Later", "2") is SECOND
    assert find(plugins, "Later") is None
    assert find(plugins, "Thrice") is None


def test_only_the_plugin_that_is_asked_for_is_loaded():
    plugins = registry_of(Twice="instance", Broken="missing")
    assert find(plugins, "Twice") is INSTANCE
    assert plugins.failures() == []


@pytest.mark.parametrize(("value", "message"), [("missing", "no such module"), ("string", "names no layer plugin")])
def test_a_broken_plugin_says_what_is_broken_when_a_layer_needs_it(value, message):
    with pytest.raises(PluginError, match="could not be loaded") as error:
        find(registry_of(Broken=value), "Broken")
    assert message in error.value.found


def test_loading_all_registers_the_good_and_records_the_broken():
    plugins = registry_of(Twice="instance", acme__Twice="class", Later="second", Broken="missing")
    assert layer_plugins.load_layer_plugins(plugins) == [
        ("Later", "2", ""),
        ("Twice", "1", ""),
        ("Twice", "1", "acme"),
    ]
    assert plugin_layer.layer_plugin("Later", "2") is SECOND
    assert [one.name for one in plugins.failures()] == ["Broken"]


def test_a_name_that_is_taken_is_recorded():
    plugin_layer.register_layer_plugin("Twice", SECOND)
    plugins = registry_of(Twice="instance")
    assert layer_plugins.load_layer_plugins(plugins) == []
    assert "Two layer plugins have one name" in plugins.failures()[0].message


def test_layers_find_the_plugins_of_the_house_once_connected():
    layer_plugins.connect()
    assert plugin_layer.layer_plugin("Det").output_specs
    assert [one for one in failures() if one.group == LAYERS] == []
