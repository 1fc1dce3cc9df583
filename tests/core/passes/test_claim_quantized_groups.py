"""Groups are taken by the plugin that claims them, or by the plugin layer in their middle; otherwise they stay."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from tests.core.passes.claiming_package import ACME, CLAIMING, ENTRIES
from tests.core.passes.quantized_networks import dequantized, named, networks_of_sums, quantized, quantized_sum

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.building import Builder, assess
from dryfit.engine.engine import Engine
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.plugin import Plugin
from dryfit.network.network import Network
from dryfit.network.printing import network_text
from dryfit.network.verify import check
from dryfit.passes.canonical import canonical_pipeline, specialise
from dryfit.plugins import registry
from dryfit.quantization.quantized_group import find_quantized_group
from dryfit.reference.executor import run_reference


def run_pass(network):
    found = canonical_pipeline().run(network).found
    check(network)
    return found.claims


def feeds():
    rng = np.random.default_rng(0)
    return {name: rng.integers(-128, 128, (1, 4, 3, 3)).astype(np.int8) for name in "ab"}


def plugin_between(channels=4):
    """The quantized sum with a plugin layer that computes it."""
    network = Network("plugin")
    tensors = [network.add_input(name, DataType.INT8, (1, channels, 3, 3)) for name in "ab"]
    real = [dequantized(network, x, scale, f"{x.name}_real") for x, scale in zip(tensors, (0.5, 0.25), strict=True)]
    total = named(network.add_layer(Plugin(plugin_name="Sum", plugin_namespace="acme"), real), "sum")
    network.mark_output(quantized(network, total, 1.0, "y"))
    return network


def test_without_plugins_a_group_stays_as_it_is():
    network = quantized_sum()
    before = network_text(network)
    claims = run_pass(network)
    assert network_text(network) == before
    assert claims.causes == {}


def test_a_claimed_group_becomes_one_layer_that_computes_the_same(install):
    install("acme", ACME + CLAIMING, ENTRIES)
    network, reference = quantized_sum(), quantized_sum()
    network.layer("sum").onnx_nodes, network.layer("y").onnx_nodes = ("Add_1",), ("Q_1",)
    claims = run_pass(network)
    (layer,) = network.layers
    assert (layer.kind, layer.name, layer.onnx_nodes) == ("plugin", "sum", ("Add_1", "Q_1"))
    assert [tensor.name for tensor in (*layer.inputs, *layer.outputs)] == ["a", "b", "y"]
    assert claims.causes == {
        "sum": "acme 1.0 (acme) claimed it: sums integers (in place of 'sum', 'y', 'a_real', 'b_real')"
    }
    np.testing.assert_array_equal(run_reference(network, feeds())["y"], run_reference(reference, feeds())["y"])
    assert claims.taken == dict.fromkeys(["sum", "y", "a_real", "b_real"], "sum")
    assert registry.failures() == []


def test_an_engine_with_a_claimed_group_gives_the_same_bits_also_from_its_file(install, tmp_path):
    install("acme", ACME + CLAIMING, ENTRIES)
    expected = run_reference(quantized_sum(), feeds())["y"]
    engine = Builder().build_engine(quantized_sum(), BuilderConfig())
    np.testing.assert_array_equal(engine.create_execution_context().run(feeds())["y"], expected)
    engine.save(tmp_path / "sum.engine")
    loaded = Engine.load(tmp_path / "sum.engine")
    np.testing.assert_array_equal(loaded.create_execution_context().run(feeds())["y"], expected)


def test_the_cause_of_a_layer_says_who_claimed_it_and_why(install):
    install("acme", ACME + CLAIMING, ENTRIES)
    (layer,) = assess(quantized_sum(), BuilderConfig()).layers
    assert layer.cause.startswith("the default device; acme 1.0 (acme) claimed it: sums integers (in place of 'sum'")


def test_the_users_device_for_the_layer_still_holds(install):
    install("acme", ACME + CLAIMING, ENTRIES)
    network, config = quantized_sum(), BuilderConfig()
    config.set_device_type(network.layer("sum"), "CPU")
    (layer,) = assess(network, config).layers
    assert (layer.device, layer.cause.partition(";")[0]) == ("CPU", "its own device")


def test_a_plugin_layer_that_takes_quantized_tensors_absorbs_its_neighbours(install):
    install("acme", ACME, ENTRIES)
    network, reference = plugin_between(), quantized_sum()
    claims = run_pass(network)
    (layer,) = network.layers
    assert [tensor.dtype for tensor in (*layer.inputs, *layer.outputs)] == [DataType.INT8] * 3
    assert [float(scale) for scale in layer.fields["input_scales"]] == [0.5, 0.25]
    assert claims.causes["sum"].startswith("the layer plugin acme::Sum takes quantized tensors (in place of")
    np.testing.assert_array_equal(run_reference(network, feeds())["y"], run_reference(reference, feeds())["y"])


def test_a_plugin_layer_that_refuses_the_quantized_tensors_keeps_its_neighbours_and_is_warned_of(install):
    install("acme", ACME.replace("shape[1] == 5", "dtype is DataType.INT8"), ENTRIES)
    network = plugin_between()
    before = network_text(network)
    claims = run_pass(network)
    assert network_text(network) == before
    (warning,) = claims.warnings
    assert "the layer plugin acme::Sum takes quantized tensors, but not these: " in warning
    assert "5 channels are too odd" in warning
    assert assess(plugin_between(), BuilderConfig()).warnings[0] == warning


def test_what_others_read_of_a_group_stays(install):
    install("acme", ACME + CLAIMING, ENTRIES)
    network = quantized_sum()
    network.mark_output(named(network.add_activation(network.tensor("a_real"), ActivationType.RELU), "relu"))
    expected = run_reference(network, feeds())
    claims = run_pass(network)
    assert [layer.name for layer in network if layer.kind != "constant"] == ["a_real", "relu", "sum"]
    assert claims.causes["sum"].endswith("(in place of 'sum', 'y', 'b_real')")
    for name, array in run_reference(network, feeds()).items():
        np.testing.assert_array_equal(array, expected[name])


def test_groups_in_a_row_are_each_claimed(install):
    install("acme", ACME + CLAIMING, ENTRIES)
    network = quantized_sum()
    b = network.tensor("b_real")
    y = dequantized(network, network.tensor("y"), 0.5, "y_real")
    total = network.add_elementwise(y, b, ElementWiseOperation.SUM)
    network.unmark_output(network.tensor("y"))
    network.mark_output(quantized(network, named(total, "sum2"), 1.0, "z"))
    expected = run_reference(network, feeds())["z"]
    claims = run_pass(network)
    assert [(layer.kind, layer.name) for layer in network] == [("plugin", "sum"), ("plugin", "sum2")]
    assert list(claims.causes) == ["sum", "sum2"]
    np.testing.assert_array_equal(run_reference(network, feeds())["z"], expected)


@pytest.fixture
def _claiming(install):
    install("acme", ACME + CLAIMING, ENTRIES)


@pytest.mark.usefixtures("_claiming")
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(network=networks_of_sums())
def test_whatever_is_claimed_the_network_gives_the_same_bits_under_the_same_names(network):
    expected = run_reference(network, feeds())
    rewritten = specialise(network, {})
    run_pass(rewritten)
    assert [tensor.name for tensor in rewritten.outputs] == [tensor.name for tensor in network.outputs]
    assert not any(find_quantized_group(layer) for layer in rewritten)
    for name, array in run_reference(rewritten, feeds()).items():
        np.testing.assert_array_equal(array, expected[name])
    assert registry.failures() == []


def test_quantizations_that_do_the_same_become_one_tensor(install):
    install("acme", ACME + CLAIMING, ENTRIES)
    network = quantized_sum()
    twin = quantized(network, network.tensor("sum"), 1.0, "twin")
    network.mark_output(dequantized(network, twin, 1.0, "real"))
    expected = run_reference(network, feeds())
    run_pass(network)
    assert network.layer("real").inputs[0].name == "y"
    for name, array in run_reference(network, feeds()).items():
        np.testing.assert_array_equal(array, expected[name])


LAYERS = """
from dryfit import hookimpl
from dryfit.network.layers.quantization import Cast
from dryfit.network.layers.movement import Identity
from dryfit.network.layers.quantization import Quantize
from dryfit.passes.canonical import specialise
from dryfit.network.data_types import DataType
from dryfit.plugins.contributions import GroupClaim

class Broken(Identity):
    def infer_outputs(self, inputs):
        raise KeyError("broken")

@hookimpl
def claim_quantized_group(group):
    return GroupClaim({layer}, "because")
"""


@pytest.mark.parametrize(
    ("layer", "why"),
    [
        ("'a layer'", "it returned str, and a layer is required"),
        ("group.layer", "layer 'sum' is in a network already"),
        ("Cast(to_type=DataType.FLOAT)", "it returns FLOAT (1, 4, 3, 3), and INT8 (1, 4, 3, 3) is required"),
        ("Quantize()", "The input of a quantization must be floating point or INT32 (found INT8)"),
        ("Broken()", "KeyError: 'broken'"),
    ],
)
def test_a_claim_that_does_not_fit_is_the_plugins_failure_and_the_group_stays(install, layer, why):
    install("acme", LAYERS.format(layer=layer))
    network = quantized_sum()
    before = network_text(network)
    claims = run_pass(network)
    assert claims.causes == {}
    assert network_text(network) == before
    (failure,) = registry.failures()
    assert (failure.distribution, failure.hook) == ("acme", "claim_quantized_group")
    assert failure.message.startswith("the claim of the quantized group of layer 'sum' (elementwise) does not fit: ")
    assert why in failure.message


def test_a_claim_that_raises_is_recorded_and_the_next_plugin_is_asked(install):
    install("aaa", "from dryfit import hookimpl\n@hookimpl\ndef claim_quantized_group(group):\n    exit(3)\n")
    install("acme", ACME + CLAIMING, ENTRIES)
    claims = run_pass(quantized_sum())
    assert list(claims.causes) == ["sum"]
    assert [failure.distribution for failure in registry.failures()] == ["aaa"]
