"""Networks survive a file exactly, and a file that is wrong is told so."""

import contextlib
import copy
import json

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.network.random_networks import networks

from dryfit.errors import DryfitError, NetworkError
from dryfit.network import plugin_table
from dryfit.network.data_types import DataType
from dryfit.network.layer import LAYER_KINDS
from dryfit.network.layer_plugin import LayerPlugin
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.generators import FillOperation
from dryfit.network.layers.plugin import Plugin
from dryfit.network.network import Network
from dryfit.network.plugin_table import register_layer_plugin
from dryfit.network.printing import network_text
from dryfit.network.serialization import network_from_dict, network_to_dict
from dryfit.network.tensor import TensorLocation, TensorSpec
from dryfit.reference.executor import run_reference


def _network():
    network = Network("small")
    network.metadata["producer"] = "test"
    x = network.add_input("x", DataType.FLOAT, (-1, 3, 8, 8))
    x.set_dimension_name(0, "batch")
    x.set_dynamic_range(-1, 2)
    x.allowed_formats = frozenset({"LINEAR", "CHW4"})
    weights = np.arange(4 * 3 * 9, dtype=np.float32).reshape(4, 3, 3, 3)
    conv = network.add_convolution_nd(x, 4, (3, 3), weights)
    conv.name, conv.onnx_nodes, conv.metadata = "conv", ("Conv_0", "BatchNorm_1"), "note"
    network.rename_layer(conv, "conv")
    conv.padding_nd = (1, 1)
    conv.precision = DataType.HALF
    conv.set_output_type(0, DataType.HALF)
    relu = network.add_activation(conv.get_output(0), ActivationType.CLIP)
    relu.alpha, relu.beta = -np.inf, float("inf")
    shape = network.add_shape(relu.get_output(0))
    shape.get_output(0).location = TensorLocation.HOST
    shuffle = network.add_shuffle(relu.get_output(0))
    shuffle.set_input(1, shape.get_output(0))
    scale = network.add_constant((), np.float32(0.5).reshape(())).get_output(0)
    quantized = network.add_quantize(shuffle.get_output(0), scale)
    network.rename_tensor(quantized.get_output(0), "y")
    network.mark_output(quantized.get_output(0))
    network.mark_output(relu.get_output(0))
    return network


def _through_json(network):
    data, arrays = network_to_dict(network)
    return network_from_dict(json.loads(json.dumps(data, allow_nan=False)), arrays)


def test_everything_that_a_network_says_is_the_same_after_a_round_trip():
    network = _network()
    data, arrays = network_to_dict(network)
    again = _through_json(network)
    data_again, arrays_again = network_to_dict(again)
    assert data_again == data
    assert arrays_again.keys() == arrays.keys()
    assert all(arrays_again[name] is arrays[name] for name in arrays)
    assert network_text(again) == network_text(network)
    conv = again.layer("conv")
    assert (conv.onnx_nodes, conv.metadata, conv.precision) == (("Conv_0", "BatchNorm_1"), "note", DataType.HALF)
    assert again.tensor("x").dynamic_range == (-1, 2)
    assert again.tensor("x").allowed_formats == {"LINEAR", "CHW4"}
    assert again.tensor("x").get_dimension_name(0) == "batch"
    assert again[2].get_output(0).location is TensorLocation.HOST
    assert again[1].alpha == -np.inf


def test_arrays_have_the_names_of_their_layers_and_parameters():
    _, arrays = network_to_dict(_network())
    assert "conv.kernel" in arrays


def test_an_array_that_layers_share_is_written_once():
    network, weights = Network(), np.ones(3, ml_dtypes.bfloat16)
    for _ in range(2):
        network.mark_output(network.add_constant((3,), weights).get_output(0))
    data, arrays = network_to_dict(network)
    assert len(arrays) == 1
    again = network_from_dict(data, arrays)
    assert again[0].weights is again[1].weights is weights


@given(networks())
def test_a_random_network_computes_the_same_after_a_round_trip(built):
    network, x = built
    expected, found = (run_reference(each, {"x": x}) for each in (network, _through_json(network)))
    assert expected.keys() == found.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)


def test_parameters_of_every_layer_kind_have_types_that_a_file_can_hold():
    from dryfit.network.serialization import _parameter_types

    for cls in LAYER_KINDS.values():
        assert _parameter_types(cls).keys() == {field.name for field in cls.parameters()}


class _Doubler(LayerPlugin):
    plugin_name = "Doubler"
    asked = 0

    def output_specs(self, fields, inputs):
        _Doubler.asked += 1
        return [TensorSpec(inputs[0].shape, inputs[0].dtype)]

    def enqueue(self, fields, inputs):
        return [inputs[0] * 2]


def test_reading_asks_no_plugin_and_keeps_its_fields(monkeypatch):
    monkeypatch.setattr(plugin_table, "_REGISTERED", {})
    register_layer_plugin(_Doubler())
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (2, -1))
    fields = {
        "a": 1,
        "b": 2.5,
        "c": "text",
        "d": (1, (2.0, "x"), True),
        "e": np.arange(3),
        "f": float("nan"),
        "g": False,
    }
    network.mark_output(network.add_plugin([x], "Doubler", fields).get_output(0))
    data, arrays = network_to_dict(network)
    plugin_table._REGISTERED.clear()
    asked = _Doubler.asked
    again = network_from_dict(json.loads(json.dumps(data)), arrays)
    assert _Doubler.asked == asked
    assert isinstance(again[0], Plugin)
    assert again[0].get_output(0).shape == (2, -1)
    found = again[0].fields
    assert {key: found[key] for key in "abcdg"} == {key: fields[key] for key in "abcdg"}
    assert type(found["a"]) is int
    assert found["g"] is False
    assert np.isnan(found["f"])
    np.testing.assert_array_equal(found["e"], fields["e"])


def _change(data, path, value):
    changed = copy.deepcopy(data)
    place = changed
    for key in path[:-1]:
        place = place[key]
    if value is KeyError:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return changed


HOSTILE = [
    (("layers", 0, "kind"), "convolutions", "Unknown layer kind"),
    (("layers", 0, "kind"), 7, "layers[0].kind"),
    (("layers", 0, "name"), "", "Layer names must be unique and not empty"),
    (("layers", 1, "name"), "conv", "layers[1] 'conv'"),
    (("layers", 0, "inputs"), ["nowhere"], "No earlier tensor"),
    (("layers", 0, "inputs"), ["y"], "No earlier tensor"),
    (("layers", 0, "inputs"), [], "Input 0 is not connected"),
    (("layers", 0, "inputs"), "x", "a list"),
    (("layers", 1, "outputs"), [], "do not match those in the file"),
    (("layers", 0, "outputs", 0, "shape"), [1, 4, 8, 9], "do not match those in the file"),
    (("layers", 0, "outputs", 0, "dtype"), "INT8", "do not match those in the file"),
    (("layers", 0, "outputs", 0, "name"), "x", "Tensor names must be unique"),
    (("layers", 0, "output_types"), {"1": "HALF"}, "index is out of range"),
    (("layers", 0, "output_types"), {"-1": "HALF"}, "index is out of range"),
    (("layers", 0, "precision"), "FLOAT999", "precision"),
    (("layers", 0, "parameters"), {}, "missing or unknown"),
    (("layers", 0, "parameters", "kernel"), {"array": "lost"}, "no array with this name"),
    (("layers", 0, "parameters", "kernel"), {"array": 3}, "an array's name"),
    (("layers", 0, "parameters", "kernel"), [1, 2], "kernel"),
    (("layers", 0, "parameters", "num_groups"), True, "bool True; allowed: int"),
    (("layers", 0, "parameters", "num_groups"), "1", "str 1; allowed: int"),
    (("layers", 0, "parameters", "num_groups"), 0, "at least 1"),
    (("layers", 0, "parameters", "num_groups"), 2**70, "allowed: int"),
    (("layers", 0, "parameters", "stride_nd"), [1, 1.5], "stride_nd[1]"),
    (("layers", 0, "parameters", "stride_nd"), "11", "a list"),
    (("layers", 0, "parameters", "stride_nd"), [0, 0], "too small"),
    (("layers", 0, "parameters", "padding_mode"), "SAME", "EXPLICIT_ROUND_DOWN"),
    (("layers", 0, "parameters", "code"), "import os", "code"),
    (("layers", 1, "parameters", "alpha"), {"float": "1e999"}, "inf, -inf or nan"),
    (("layers", 1, "parameters", "alpha"), "inf", "allowed: float"),
    (("layers", 1, "parameters", "alpha"), None, "allowed: float"),
    (("layers", 0), [], "must be an object"),
    (("layers",), {}, "network.layers"),
    (("layers", 0, "metadata"), KeyError, "missing or unknown"),
    (("inputs", 0, "shape"), [-2, 3, 8, 8], "-1 or at least 0"),
    (("inputs", 0, "shape"), [2**63, 3, 8, 8], "-1 or at least 0"),
    (("inputs", 0, "shape"), [1.0], "shape[0]"),
    (("inputs", 0, "dtype"), "COMPLEX", "FLOAT, HALF"),
    (("inputs", 0, "name"), "", "must have a name"),
    (("inputs", 0, "dynamic_range"), [0, 0], "dynamic range"),
    (("inputs", 0, "dynamic_range"), [1], "2 items"),
    (("inputs", 0, "dimension_names"), {"4": "w"}, "index is out of range"),
    (("inputs", 0, "location"), "MOON", "DEVICE, HOST"),
    (("outputs",), ["y", "y"], "must be listed once"),
    (("outputs",), ["z"], "No earlier tensor"),
    (("outputs",), [None], "outputs[0]"),
    (("name",), 3, "network.name"),
    (("extra",), 3, "extra"),
    (("metadata",), {"a": 1}, "metadata.a"),
]


@pytest.mark.parametrize(
    ("path", "value", "text"), HOSTILE, ids=[f"{'.'.join(map(str, p))}={v}" for p, v, _ in HOSTILE]
)
def test_data_that_describes_no_network_is_refused_and_says_where(path, value, text):
    data, arrays = network_to_dict(_network())
    with pytest.raises(NetworkError) as caught:
        network_from_dict(_change(data, path, value), arrays)
    assert text in str(caught.value)


def test_an_array_of_the_wrong_shape_or_type_is_refused():
    data, arrays = network_to_dict(_network())
    with pytest.raises(NetworkError, match="The kernel has the wrong shape"):
        network_from_dict(data, arrays | {"conv.kernel": np.ones((4, 2, 3, 3), np.float32)})
    with pytest.raises(DryfitError, match="data type"):
        network_from_dict(data, arrays | {"(Unnamed Layer* 4) [Constant].weights": np.array("text")})


def test_deep_nesting_is_refused(monkeypatch):
    monkeypatch.setattr(plugin_table, "_REGISTERED", {})
    register_layer_plugin(_Doubler())
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (2,))
    network.mark_output(network.add_plugin([x], "Doubler", {"a": (1,)}).get_output(0))
    data, arrays = network_to_dict(network)
    deep = []
    for _ in range(900):
        deep = [deep]
    data["layers"][0]["parameters"]["fields"]["a"] = deep
    with pytest.raises(NetworkError, match="nested too deeply"):
        network_from_dict(data, arrays)


def test_numbers_that_break_the_arithmetic_of_shapes_are_refused():
    network = Network()
    network.mark_output(network.add_fill((2,), FillOperation.LINSPACE).get_output(0))
    network.mark_output(network.add_shape(network[0].get_output(0)).get_output(0))
    data, arrays = network_to_dict(network)
    data["layers"][0]["parameters"]["shape"] = [2**63]
    data["layers"][0]["outputs"][0]["shape"] = [2**63]
    with pytest.raises(NetworkError):
        network_from_dict(data, arrays)


def test_a_parameter_that_no_file_can_hold_is_refused_when_writing():
    network = Network()
    layer = network.add_activation(network.add_input("x", DataType.FLOAT, (1,)), ActivationType.RELU)
    vars(layer)["alpha"] = object()
    with pytest.raises(NetworkError, match="found object"):
        network_to_dict(network)


@given(st.data())
def test_no_change_of_one_value_breaks_anything_but_with_a_clear_error(data):
    plain, arrays = network_to_dict(_network())
    path, place = [], plain
    while isinstance(place, (dict, list)) and place:
        key = data.draw(st.sampled_from(sorted(place)) if isinstance(place, dict) else st.integers(0, len(place) - 1))
        path.append(key)
        place = place[key]
    value = data.draw(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just([]), st.just({}))
    )
    with contextlib.suppress(DryfitError):
        network_from_dict(_change(plain, path, value), arrays)
