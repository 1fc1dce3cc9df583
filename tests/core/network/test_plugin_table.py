"""The layer plugins of a process by name."""

import pytest

from dryfit.errors import PluginError
from dryfit.network import installed_packages, plugin_table
from dryfit.network.installed_packages import InstalledPackages
from dryfit.network.layer_plugin import LayerPlugin
from dryfit.network.plugin_table import find_plugin, get_plugin, register_layer_plugin


class Nothing(LayerPlugin):
    """No outputs."""

    def __init__(self, name="Nothing", namespace=""):
        self.plugin_name, self.plugin_namespace = name, namespace

    def output_specs(self, fields, inputs):
        return []

    def enqueue(self, fields, inputs):
        return []


class Packages:
    """Installed packages with one plugin."""

    def __init__(self):
        self.asked = []

    def find(self, key):
        self.asked.append(key)
        return Nothing("Found") if key == ("Found", "1", "") else None

    def titles(self):
        return ["Found"]

    def reason(self, key):
        return "found 1.0 is switched off" if key[0] == "Off" else ""


@pytest.fixture(autouse=True)
def packages(monkeypatch):
    monkeypatch.setattr(plugin_table, "_REGISTERED", {})
    known = Packages()
    answers = InstalledPackages(known.find, known.titles, known.reason)
    monkeypatch.setattr(installed_packages, "_find", lambda: answers)
    return known


def test_packages_are_asked_once_for_what_is_not_registered(packages):
    assert find_plugin(("Found", "1", "")) is find_plugin(("Found", "1", ""))
    assert packages.asked == [("Found", "1", "")]
    assert find_plugin(("Other", "3", "")) is None


def test_a_plugin_that_is_missing_is_answered_with_those_that_are_there_and_the_closest():
    register_layer_plugin(Nothing(namespace="mine"))
    with pytest.raises(PluginError) as caught:
        get_plugin(("nothng", "1", "mine"), "layer 'a'")
    assert caught.value.where == "layer 'a'"
    assert caught.value.found == "mine::nothng version 1"
    assert caught.value.allowed == "Found, mine::Nothing version 1"
    assert caught.value.remedy.startswith("Did you mean mine::Nothing version 1?")


def test_a_plugin_that_is_switched_off_is_told_as_such():
    with pytest.raises(PluginError, match=r"Off version 1; found 1\.0 is switched off"):
        get_plugin(("Off", "1", ""), "layer 'a'")


def test_two_plugins_of_one_name_are_refused_and_both_named():
    class Another(Nothing):
        pass

    register_layer_plugin(Nothing())
    with pytest.raises(PluginError, match=r"plugin Nothing version 1: .*test_plugin_table\.Nothing and .*Another\)"):
        register_layer_plugin(Another())


def test_of_one_class_the_latest_instance_counts():
    register_layer_plugin(Nothing())
    latest = Nothing()
    register_layer_plugin(latest)
    assert find_plugin(latest.key) is latest


@pytest.mark.parametrize("thing", [3, Nothing, lambda x: x])
def test_what_is_no_plugin_is_refused(thing):
    with pytest.raises(PluginError, match=r"not a layer plugin.*an instance of a subclass of dryfit\.LayerPlugin"):
        register_layer_plugin(thing)


def test_a_plugin_without_a_name_is_refused():
    with pytest.raises(PluginError, match="must be strings, and the name must not be empty"):
        register_layer_plugin(Nothing(""))
