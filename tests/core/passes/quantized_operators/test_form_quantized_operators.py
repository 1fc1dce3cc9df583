"""Layers with a quantize method become quantized operators; what they cannot become is told, or refused."""

import math

import numpy as np
import pytest
from tests.core.passes.quantized_networks import named
from tests.core.passes.quantized_operators.networks import constant, convolution_network, dq, feeds, q, relu6

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.building import Builder
from dryfit.errors import BuildError, UnknownNameError
from dryfit.network.copying import copy_network
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import Activation, ActivationType
from dryfit.network.layers.convolution import FullyConnected
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation
from dryfit.network.layers.slice import Shuffle
from dryfit.network.layers.window_layer import Pooling, PoolingType
from dryfit.network.network import Network
from dryfit.network.verify import check
from dryfit.passes.canonical import canonical_pipeline
from dryfit.reference.executor import run_reference


def formed(network):
    """(the network after all passes, what became of its layers)."""
    copy = copy_network(network)
    found = canonical_pipeline().run(copy).found
    check(copy)
    return copy, found.operators


def computes(network):
    """What is computed, in order; constants left out."""
    return [getattr(layer, "computes", layer.kind) for layer in network.layers if layer.kind != "constant"]


def same_results(network, other):
    given = feeds(network)
    expected, found = run_reference(network, given), run_reference(other, given)
    for name, array in expected.items():
        assert array.size
        np.testing.assert_array_equal(found[name], array)


def test_a_network_without_methods_stays_as_it_is(acme):
    network = convolution_network()
    _, operators = formed(network)
    assert operators.causes == {} == operators.taken


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_a_convolution_between_q_and_dq_becomes_one_layer_on_codes(acme, dtype):
    network = convolution_network(activation=relu6(), dtype=dtype, bias=np.array([8.0, -4.0, 2.0], np.float32))
    network.quantize_method = acme
    work, operators = formed(network)
    assert computes(work) == ["quantize", "convolution", "dequantize"]
    layer = work.layer("conv")
    assert (layer.method, layer.quantize_method, layer.limits) == (acme, acme, (0.0, 6.0))
    assert (float(layer.scales[0]), int(layer.zero_points[0])) == (0.25, 3)
    np.testing.assert_array_equal(layer.scales[1], np.array([0.5, 0.25, 0.125], np.float32))
    assert (float(layer.output_scale), int(layer.output_zero_point), layer.to_type.name) == (1.0, -2, "INT8")
    np.testing.assert_array_equal(layer.inputs[2].spec.value, np.array([64, -64, 64], np.int32))
    assert {operators.taken[name] for name in ("conv", "bound", "y_codes", "x_real", "w_real")} == {"conv"}
    assert operators.causes["conv"].startswith("computed by the quantize method 'acme', with 'bound', 'y_codes'")
    assert operators.left == []
    same_results(network, work)


def test_a_bias_that_was_int32_is_taken_as_it_is_also_beyond_what_fp32_holds(acme):
    codes = [2**30 + 1, -(2**24) - 1, 7]
    network = convolution_network(bias_codes=codes)
    network.quantize_method = acme
    work, _ = formed(network)
    np.testing.assert_array_equal(work.layer("conv").inputs[2].spec.value, codes)


def test_a_bias_beyond_int32_leaves_the_layer_in_real_numbers(acme):
    network = convolution_network(bias=np.array([1e12, 0, 0], np.float32))
    network.quantize_method = acme
    work, operators = formed(network)
    assert [(one.layer, one.reason) for one in operators.left] == [
        ("conv", "its bias, divided by the scales of input and weights, exceeds INT32")
    ]
    assert "convolution" in computes(work)
    assert not any(layer.kind == "quantized_operator" and layer.computes == "convolution" for layer in work.layers)


def test_integers_of_a_bias_become_real_numbers_where_the_layer_stays_in_real_numbers(acme):
    network = convolution_network(bias_codes=[8, -4, 2])
    network.quantize_method = acme
    network.layer("conv").quantize_method = "none"
    work, _ = formed(network)
    (_, _, bias) = work.layer("conv").inputs
    np.testing.assert_array_equal(bias.spec.value, np.array([1.0, -0.25, 0.0625], np.float32))
    same_results(network, work)


def test_a_layer_wins_over_its_network_and_none_keeps_it_out(acme):
    network = convolution_network()
    network.layer("conv").quantize_method = acme
    work, _ = formed(network)
    assert computes(work) == ["quantize", "convolution", "dequantize"]
    assert [layer.name for layer in work.layers if layer.kind == "quantized_operator"] == ["conv"]
    network.quantize_method, network.layer("conv").quantize_method = acme, "none"
    work, operators = formed(network)
    assert [layer.name for layer in work.layers if layer.kind == "quantized_operator"] == ["x_codes", "y"]
    assert operators.left == []


def test_codes_of_another_grid_are_requantized_and_equal_ones_pass(acme):
    network = Network("chain")
    x = network.add_input("x", DataType.UINT8, (1, 2, 4))
    real = dq(network, x, 0.5, 7, name="real")
    network.mark_output(q(network, real, 0.25, 3, np.int8, "other"))
    network.mark_output(q(network, real, 2.0, 1, np.uint8, "third"))
    again = q(network, dq(network, network.tensor("other"), 0.25, 3), 0.25, 3, np.int8, "same")
    network.mark_output(q(network, dq(network, again, 0.25, 3), 1.0, 0, np.int8, "fourth"))
    network.quantize_method = acme
    work, operators = formed(network)
    assert computes(work) == ["identity"] * 3
    assert operators.taken["real"] in ("other", "third")
    same_results(network, work)


def test_layers_that_only_move_codes_get_them_with_zero_points(acme):
    network = Network("movers")
    x = network.add_input("x", DataType.UINT8, (1, 2, 4, 4))
    real = dq(network, x, 0.5, 7)
    pooled = network.add_layer(
        Pooling(pooling_type=PoolingType.MAX, window_size_nd=(2, 2), stride_nd=(2, 2)), [real]
    ).outputs[0]
    turned = network.add_layer(Shuffle(first_transpose=(0, 2, 3, 1), reshape_dims=(1, 8)), [pooled]).outputs[0]
    network.mark_output(q(network, turned, 0.5, 7, np.uint8, "y"))
    network.quantize_method = acme
    work, operators = formed(network)
    assert computes(work) == ["pooling", "shuffle"]
    assert {tensor.dtype.name for tensor in work.tensors} == {"UINT8"}
    assert operators.left == []
    same_results(network, work)


def test_a_fully_connected_layer_is_formed_over_the_shapes_around_it(acme):
    rng = np.random.default_rng(0)
    network = Network("fully connected")
    x = network.add_input("x", DataType.INT8, (2, 4, 1, 1))
    weights = dq(network, constant(network, rng.integers(-9, 9, (3, 4)), np.int8), [0.5, 1.0, 2.0], axis=0)
    bias = np.array([1.0, 2.0, -4.0], np.float32)
    y = network.add_layer(FullyConnected(num_output_channels=3, bias=bias), [dq(network, x, 0.5, 1), weights])
    flat = network.add_layer(Shuffle(reshape_dims=(2, 3)), [y.outputs[0]]).outputs[0]
    network.mark_output(q(network, flat, 1.0, 4, np.int8, "y"))
    network.quantize_method = acme
    work, _ = formed(network)
    assert computes(work) == ["fully_connected", "shuffle"]
    same_results(network, work)


def sum_and_more():
    """A sum, a sigmoid, a softmax and a hyperbolic tangent of the same codes; a convolution without quantization."""
    network = Network("several")
    x = network.add_input("x", DataType.INT8, (1, 4))
    real = dq(network, x, 0.5, 1, name="real")
    sums = named(network.add_layer(Elementwise(op=ElementWiseOperation.SUM), [real, real]), "sum")
    network.mark_output(q(network, sums, 1.0, name="sum_codes"))
    for name, kind in (("sigmoid", ActivationType.SIGMOID), ("tanh", ActivationType.TANH)):
        y = named(network.add_layer(Activation(activation_type=kind), [real]), name)
        network.mark_output(q(network, y, 1 / 128, name=f"{name}_codes"))
    return network


def test_what_the_networks_method_does_not_have_stays_in_real_numbers_and_is_told(acme):
    network = sum_and_more()
    network.quantize_method = acme
    work, operators = formed(network)
    reasons = {one.layer: one.reason for one in operators.left}
    assert set(reasons) == {"sum", "sigmoid", "tanh"}
    assert "does not have this operator" in reasons["sum"]
    assert "eltwise_sum of INT8" in reasons["sum"]
    assert "nothing fits" in reasons["sigmoid"]
    assert "does not have this operator (found function of INT8 to INT8" in reasons["tanh"]
    assert str(operators.left[0]).startswith("'sum' stays in floating point, without the quantize method 'acme': ")
    assert not any(layer.kind == "quantized_operator" for layer in work.layers)
    same_results(network, work)


def test_layers_that_ask_for_a_method_that_they_cannot_have_are_refused_all_at_once(acme):
    network = sum_and_more()
    for name in ("sum", "sigmoid", "tanh", "sum_codes"):
        network.layer(name).quantize_method = acme
    network.layer("sum_codes").quantize_method = ""
    network.mark_output(network.tensor("sigmoid"))
    _, operators = formed(network)
    assert len(operators.problems) == 3
    assert operators.left == []
    config = BuilderConfig()
    config.default_device_type = "CPU"
    with pytest.raises(BuildError) as refused:
        Builder().build_engine(network, config)
    text = str(refused.value)
    assert "The quantize methods of these layers do not support them" in text
    assert "layer 'sum' (elementwise) asks for the quantize method 'acme'" in text
    assert "its output 'sigmoid' is an output of the network" in text
    assert "layer 'tanh' (activation) asks" in text


@pytest.mark.parametrize("of_layer", [False, True])
def test_an_unknown_method_is_refused_before_anything_else_with_the_closest_name(acme, of_layer):
    network = convolution_network()
    (network.layer("conv") if of_layer else network).quantize_method = "acne"
    with pytest.raises(UnknownNameError, match=r"Unknown quantize method: 'acne'.*Did you mean 'acme'") as refused:
        Builder().build_engine(network, BuilderConfig())
    assert refused.value.where == ("layer 'conv' (convolution)" if of_layer else "network 'quantized convolution'") + (
        ", quantize_method"
    )


def test_what_stands_in_a_layers_way_is_said(acme):
    def reason(change):
        network = convolution_network()
        network.quantize_method = acme
        change(network)
        _, operators = formed(network)
        return {one.layer: one.reason for one in operators.left}["conv"]

    def real_kernel(network):
        network.layer("conv").kernel = np.ones((3, 2, 3, 3), np.float32)
        network.layer("conv").set_input(1, None)

    assert reason(real_kernel) == "its weights are not quantized"
    assert "is read in floating point by" in reason(
        lambda network: (
            network.add_layer(Shuffle(reshape_dims=(-1,)), [network.tensor("conv")])
            and network.mark_output(network.layers[-1].outputs[0])
        )
    )
    assert "its scales follow axis 1, and the output channels are axis 0" in reason(
        lambda network: [
            setattr(network.layer("w_real"), "axis", 1),
            network.layer("w_real").set_input(1, constant(network, [0.5, 0.25], np.float32)),
        ]
    )
    assert reason(lambda network: setattr(network.layer("conv"), "precision", DataType.HALF)) == (
        "a type is requested for it, so it stays as it is"
    )


def test_a_relu_without_an_upper_bound_limits_below_only(acme):
    network = convolution_network(activation=Activation(activation_type=ActivationType.RELU))
    network.quantize_method = acme
    work, _ = formed(network)
    assert work.layer("conv").limits == (0.0, math.inf)
    same_results(network, work)
