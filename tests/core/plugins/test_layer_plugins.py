"""Layer plugins of installed packages: found by name, each alone, and nobody stopped by a broken one."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pytest

from dryfit.errors import PluginError
from dryfit.network import plugin_table
from dryfit.plugins import registry
from dryfit.plugins.discovery import HOOKS, LAYERS
from dryfit.plugins.layer_plugins import (
    find_layer_plugin,
    layer_plugin_package,
    layer_plugin_titles,
    why_no_layer_plugin,
)

MODULES = {
    "acme_layers": """
import dryfit


class Twice(dryfit.LayerPlugin):
    plugin_name = "Twice"

    def output_specs(self, fields, inputs):
        return [dryfit.TensorSpec(inputs[0].shape, inputs[0].dtype)]

    def enqueue(self, fields, inputs):
        return [inputs[0] + inputs[0]]


class OfAcme(Twice):
    plugin_namespace = "acme"


class Second(Twice):
    plugin_version = "2"


TWICE = Twice()
WORD = "a string"
""",
    "acme_broken": "raise RuntimeError('the board is on fire')",
    "acme_hooks": """
import dryfit
from acme_layers import Twice


class Hooked(Twice):
    plugin_name = "Hooked"


CALLS = []


@dryfit.hookimpl
def register_layers():
    CALLS.append(1)
    return [Hooked(), "a string"]
""",
}


@pytest.fixture(autouse=True)
def _acme(tmp_path, monkeypatch):
    """A stranger's modules, on the path, and no plugin registered yet."""
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(plugin_table, "_REGISTERED", {})


def packages(*entries, disabled=""):
    """(name, value) or (name, value, distribution) of entry points in `dryfit.layers`; a name of "hooks" is one."""
    made = []
    for name, value, *distribution in entries:
        one = EntryPoint(name, value, HOOKS if name == "hooks" else LAYERS)
        vars(one)["dist"] = SimpleNamespace(name=(*distribution, "acme")[0], version="1.2")
        made.append(one)
    registry.begin_again(lambda: made, disabled)


def test_a_plugin_is_found_by_its_entry_points_name_version_and_namespace():
    packages(("Twice", "acme_layers:TWICE"), ("acme::Twice", "acme_layers:OfAcme"))
    assert find_layer_plugin(("Twice", "1", "")) is sys.modules["acme_layers"].TWICE
    assert type(find_layer_plugin(("Twice", "1", "acme"))).__name__ == "OfAcme"
    assert find_layer_plugin(("Twice", "2", "")) is None
    assert why_no_layer_plugin(("Twice", "2", "")) == "Twice 1.2 (acme) has another version"
    assert find_layer_plugin(("Thrice", "1", "")) is None
    assert layer_plugin_titles() == ["Twice", "acme::Twice"]


def test_only_the_plugin_that_is_asked_for_is_loaded():
    packages(("Twice", "acme_layers:TWICE"), ("Broken", "acme_broken:X"), ("hooks", "acme_broken"))
    assert layer_plugin_package(("Twice", "1", "")) == "acme 1.2"
    assert registry.failures() == []
    assert "acme_broken" not in sys.modules


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("acme_broken:X", "RuntimeError: the board is on fire"),
        ("acme_layers:WORD", "not a layer plugin (found str"),
        ("acme_layers:OfAcme", "the name of its entry point (found 'acme::Twice'; allowed: 'Broken')"),
    ],
)
def test_a_broken_plugin_says_what_is_broken_when_a_layer_needs_it(value, message):
    packages(("Broken", value))
    with pytest.raises(PluginError, match=r"acme 1\.2: The layer plugin Broken version 1 could not be loaded") as error:
        find_layer_plugin(("Broken", "1", ""))
    assert message in error.value.found
    assert [one.name for one in registry.failures()] == ["Broken"]


def test_versions_of_one_name_may_come_from_two_packages():
    packages(("Twice", "acme_layers:TWICE"), ("Twice", "acme_layers:Second", "other"))
    assert layer_plugin_package(("Twice", "1", "")) == "acme 1.2"
    assert layer_plugin_package(("Twice", "2", "")) == "other 1.2"


def test_a_name_that_two_packages_bring_is_refused_with_both_owners():
    packages(("Twice", "acme_layers:TWICE"), ("Twice", "acme_layers:Twice", "other"))
    with pytest.raises(PluginError, match=r"found Twice 1\.2 \(acme\), Twice 1\.2 \(other\)\)\. Uninstall one"):
        find_layer_plugin(("Twice", "1", ""))


def test_a_name_of_dryfits_own_stays_dryfits():
    packages(("Twice", "acme_layers:TWICE"), ("Twice", "acme_layers:Twice", "dryfit"))
    assert layer_plugin_package(("Twice", "1", "")) == "dryfit 1.2"


def test_a_plugin_that_is_switched_off_is_not_found_and_says_why():
    packages(("Twice", "acme_layers:TWICE"), disabled="acme")
    assert find_layer_plugin(("Twice", "1", "")) is None
    assert why_no_layer_plugin(("Twice", "1", "")).startswith("Twice 1.2 (acme) is switched off: ")


def test_hooks_are_asked_once_for_what_no_entry_point_names():
    packages(("Twice", "acme_layers:TWICE"), ("hooks", "acme_hooks"))
    assert find_layer_plugin(("Twice", "1", "")) is not None
    assert "acme_hooks" not in sys.modules
    assert find_layer_plugin(("Hooked", "1", "")) is find_layer_plugin(("Hooked", "1", ""))
    assert layer_plugin_package(("Hooked", "1", "")) == "acme 1.2"
    assert sys.modules["acme_hooks"].CALLS == [1]
    (failure,) = registry.failures()
    assert failure.hook == "register_layers"


def test_layers_find_the_plugins_of_the_house():
    assert plugin_table.find_plugin(("Det", "1", "")).output_specs
    assert layer_plugin_package(("Det", "1", "")).startswith("dryfit ")
