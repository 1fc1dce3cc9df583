"""Plugin layers: what the plugin says, in the layer's name."""

import numpy as np
import pytest

from dryfit.errors import NetworkError, PluginError, UnknownNameError
from dryfit.network import installed_packages, plugin_table
from dryfit.network.data_types import DataType
from dryfit.network.layer_plugin import LayerPlugin, PluginField
from dryfit.network.network import Network
from dryfit.network.plugin_table import register_layer_plugin
from dryfit.network.tensor import TensorSpec


class Halved(LayerPlugin):
    """Halves the first axis."""

    plugin_name, plugin_version, plugin_namespace = "Halved", "2", "mine"
    combinations = None

    def output_specs(self, fields, inputs):
        if fields.get("fault") == "odd":
            raise ValueError("the axis is odd")
        if fields.get("fault") == "text":
            return ["(2,)"]
        return [TensorSpec((inputs[0].shape[0] // 2,), inputs[0].dtype)]

    def format_combinations(self, fields, inputs):
        return self.combinations

    def enqueue(self, fields, inputs):
        return [inputs[0][::2]]


class Declared(Halved):
    """The same, with fields that are declared."""

    plugin_name = "Declared"
    declared_fields = {"a": PluginField(int), "b": PluginField(float, default=0.5)}


@pytest.fixture(autouse=True)
def _empty_table(monkeypatch):
    monkeypatch.setattr(plugin_table, "_REGISTERED", {})
    monkeypatch.setattr(installed_packages, "_find", installed_packages.InstalledPackages)


def _input(dtype=DataType.FLOAT):
    network = Network()
    return network, network.add_input("x", dtype, (4,))


def test_a_plugin_says_the_shape_by_its_name_or_itself():
    register_layer_plugin(Halved())
    network, x = _input()
    layer = network.add_plugin([x], "Halved", {"a": 1}, plugin_version="2", plugin_namespace="mine")
    assert layer.get_output(0).shape == (2,)
    assert layer.layer_type == "PLUGIN_V3"
    assert layer.fields == {"a": 1}
    assert network.add_plugin([x], Declared(), {"a": 1}).key == ("Declared", "2", "mine")


def test_tensorrts_method_takes_shape_inputs_after_the_others():
    network, x = _input()
    shape = network.add_shape(x).get_output(0)
    layer = network.add_plugin_v3([x], [shape], Halved(), {"a": 1})
    assert layer.inputs == [x, shape]
    assert layer.fields == {"a": 1}


def test_a_layer_whose_plugin_is_missing_is_not_added():
    network, x = _input()
    with pytest.raises(PluginError, match=r"\[Plugin_V3\].*found Halved version 1; allowed: none registered"):
        network.add_plugin([x], "Halved")
    assert len(network) == 0


@pytest.mark.parametrize(("fault", "text"), [("odd", "the axis is odd"), ("text", "must return tensor specs")])
def test_what_a_plugin_refuses_is_told_with_the_layers_name(fault, text):
    network, x = _input()
    with pytest.raises(NetworkError, match=text) as caught:
        network.add_plugin([x], Halved(), {"fault": fault})
    assert "(plugin)" in caught.value.where


def test_fields_are_completed_by_what_the_plugin_declares():
    network, x = _input()
    layer = network.add_plugin([x], Declared(), {"a": 1})
    assert layer.fields == {"a": 1}
    assert layer.complete_fields() == {"a": 1, "b": 0.5}


def test_fields_that_do_not_fit_the_declaration_are_told_all_at_once():
    network, x = _input()
    with pytest.raises(NetworkError, match="field 'a' is missing; field 'b' is str 'x', not a number"):
        network.add_plugin([x], Declared(), {"b": "x"})
    with pytest.raises(UnknownNameError, match=r"'Declared': 'A1' \(allowed: a, b\)"):
        network.add_plugin([x], Declared(), {"a": 1, "A1": 1})


@pytest.mark.parametrize("value", [None, {"a": 1}, object(), np.array(["text"]), np.array([1j])])
def test_a_field_that_no_engine_file_can_hold_is_refused(value):
    network, x = _input()
    with pytest.raises(NetworkError, match="new layer of the plugin 'Halved', field 'a'"):
        network.add_plugin([x], Halved(), {"a": value})


def test_numbers_of_numpy_and_lists_become_pythons_own():
    network, x = _input()
    layer = network.add_plugin([x], Halved(), {"a": np.float32(0.5), "b": [1, [np.int64(2), None]], "c": np.True_})
    assert layer.fields == {"a": 0.5, "b": (1, (2, None)), "c": True}
    assert [type(value) for value in layer.fields.values()] == [float, tuple, bool]


def test_deep_tuples_are_refused():
    network, x = _input()
    deep = ()
    for _ in range(17):
        deep = (deep,)
    with pytest.raises(NetworkError, match="nested too deeply"):
        network.add_plugin([x], Halved(), {"a": deep})


def test_types_that_a_plugin_does_not_name_are_refused_with_those_that_it_does():
    plugin = Halved()
    plugin.combinations = [[DataType.HALF, DataType.HALF], [DataType.INT32, DataType.INT32]]
    network, x = _input(DataType.INT64)
    with pytest.raises(NetworkError) as caught:
        network.add_plugin([x], plugin)
    assert caught.value.found == "INT64 with FP32, FP16, BF16 permitted"
    assert caught.value.allowed == "HALF LINEAR -> HALF LINEAR; INT32 LINEAR -> INT32 LINEAR"
    network, x = _input()  # FLOAT may become HALF when the engine is built
    network.add_plugin([x], plugin)


@pytest.mark.parametrize(
    "combination", [[DataType.FLOAT], [DataType.FLOAT, "FLOAT"], [DataType.FLOAT, (DataType.FLOAT, "CHW32")], 3]
)
def test_a_combination_that_is_none_is_the_plugins_fault(combination):
    plugin = Halved()
    plugin.combinations = [combination]
    network, x = _input()
    with pytest.raises(PluginError, match=r"layer plugin mine::Halved version 2.*1 inputs and 1 outputs; formats"):
        network.add_plugin([x], plugin)
