"""Which layers form a group with the Q/DQ around them, and what the group says."""

import numpy as np
import pytest
from tests.core.passes.quantized_networks import dequantized, named, quantized, quantized_sum

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.network import Network
from dryfit.quantization.quantized_group import find_quantized_group, missing_for_group


def relu_between(scale=0.5, **quantize):
    """a (INT8) -> dequantize -> relu -> quantize -> y."""
    network = Network("relu")
    a = network.add_input("a", DataType.INT8, (1, 4, 3, 3))
    relu = named(network.add_activation(dequantized(network, a, scale, "a_real"), ActivationType.RELU), "relu")
    network.mark_output(quantized(network, relu, 0.25, "y", **quantize))
    return network


def test_a_group_has_its_neighbours_tensors_and_scales():
    network = quantized_sum()
    group = find_quantized_group(network.layer("sum"))
    assert group.layer is network.layer("sum")
    assert [one.name for one in group.dequantizes] == ["a_real", "b_real"]
    assert [one.name for one in group.quantizes] == ["y"]
    assert [tensor.name for tensor in group.inputs] == ["a", "b"]
    assert [tensor.name for tensor in group.outputs] == ["y"]
    assert [float(scale) for scale in (*group.input_scales, *group.output_scales)] == [0.5, 0.25, 1.0]
    assert {scale.dtype for scale in group.input_scales} == {np.dtype(np.float32)}
    assert group.is_whole


def test_scales_broadcast_against_their_tensors_whatever_their_granularity():
    network = Network("weights")
    a = network.add_input("a", DataType.INT8, (1, 4, 3, 3))
    values = np.arange(24, dtype=np.int8).reshape(6, 4, 1, 1)
    weights = network.add_constant(values.shape, values).get_output(0)
    real = dequantized(network, weights, np.arange(1, 7, dtype=np.float32), "w_real", axis=0)
    layer = network.add_convolution_nd(dequantized(network, a, 0.5, "a_real"), 6, (1, 1), None)
    layer.set_input(1, real)
    network.mark_output(quantized(network, named(layer, "conv"), np.full(6, 0.25, np.float32), "y", axis=1))
    group = find_quantized_group(network.layer("conv"))
    assert [scale.shape for scale in group.input_scales] == [(), (6, 1, 1, 1)]
    assert group.output_scales[0].shape == (1, 6, 1, 1)
    expected = values * np.arange(1, 7, dtype=np.float32).reshape(6, 1, 1, 1)
    np.testing.assert_array_equal(values * group.input_scales[1], expected)


def test_a_scale_for_each_block_is_spread_over_the_elements():
    network = Network("blocks")
    a = network.add_input("a", DataType.INT8, (2, 4))
    scale = np.float32([[1, 2], [3, 4]])
    relu = named(
        network.add_activation(dequantized(network, a, scale, "a_real", block_shape=(1, 2)), ActivationType.RELU),
        "relu",
    )
    network.mark_output(quantized(network, relu, 1.0, "y"))
    group = find_quantized_group(network.layer("relu"))
    np.testing.assert_array_equal(group.input_scales[0], [[1, 1, 2, 2], [3, 3, 4, 4]])


def test_constants_in_real_numbers_and_indices_are_no_data():
    network = Network("gather")
    a = network.add_input("a", DataType.INT8, (4, 3))
    indices = network.add_input("indices", DataType.INT32, (2,))
    gather = named(network.add_gather(dequantized(network, a, 0.5, "a_real"), indices, 0), "gather")
    network.mark_output(quantized(network, gather, 0.5, "y"))
    group = find_quantized_group(network.layer("gather"))
    assert [one and one.name for one in group.dequantizes] == ["a_real", None]
    assert [tensor.name for tensor in group.inputs] == ["a", "indices"]
    assert group.input_scales[1] is None


def test_a_dequantization_that_others_read_leaves_the_group_not_whole():
    network = relu_between()
    real = network.tensor("a_real")
    network.mark_output(named(network.add_activation(real, ActivationType.TANH), "other"))
    group = find_quantized_group(network.layer("relu"))
    assert not group.is_whole
    assert group.private_dequantizes == []


def test_quantizations_that_do_the_same_count_as_one_and_that_of_an_output_stands_for_them():
    network = relu_between()
    twin = quantized(network, network.tensor("relu"), 0.25, "twin")
    network.mark_output(named(network.add_identity(twin), "z"))
    network.unmark_output(network.tensor("y"))
    network.mark_output(dequantized(network, network.tensor("y"), 0.25, "y_real"))
    assert [one.name for one in find_quantized_group(network.layer("relu")).quantizes] == ["y"]
    network.mark_output(twin)
    assert [one.name for one in find_quantized_group(network.layer("relu")).quantizes] == ["twin"]
    network.mark_output(network.tensor("y"))
    assert find_quantized_group(network.layer("relu")) is None


SPOILED = {
    "its output 'relu' is an output of the network": lambda network: network.mark_output(network.tensor("relu")),
    "its output 'relu' is read in floating point by 'other'": lambda network: network.mark_output(
        named(network.add_identity(network.tensor("relu")), "other")
    ),
    "its output 'relu' is quantized in different ways, or under the names of two network outputs": lambda network: (
        network.mark_output(quantized(network, network.tensor("relu"), 0.5, "coarse"))
    ),
    "its output 'relu' is quantized in different ways": lambda network: network.mark_output(
        quantized(network, network.tensor("relu"), 0.25, "f8", DataType.FP8)
    ),
    "its output 'relu' is quantized by a layer that has a zero point": lambda network: network.layer("y").set_input(
        2, zero_point(network)
    ),
    "layer 'a_real' (dequantize), which gives its input 'a_real', has a zero point": lambda network: network.layer(
        "a_real"
    ).set_input(2, zero_point(network)),
    "which gives its input 'a_real', has a zero point, or a scale that is not constant": lambda network: network.layer(
        "a_real"
    ).set_input(1, network.add_input("scale", DataType.FLOAT, ())),
    "its input 'x' is not dequantized": lambda network: network.layer("relu").set_input(
        0, network.add_input("x", DataType.FLOAT, (1, 4, 3, 3))
    ),
}
"""What keeps a layer from being a group's centre, in words, to how a network is spoiled so."""


@pytest.mark.parametrize("why", SPOILED)
def test_a_layer_without_whole_neighbours_is_no_group_and_what_is_missing_is_told(why):
    network = relu_between()
    assert find_quantized_group(network.layer("relu")) is not None
    assert missing_for_group(network.layer("relu")) == []
    SPOILED[why](network)
    assert find_quantized_group(network.layer("relu")) is None
    [found] = missing_for_group(network.layer("relu"))
    assert why in found


def zero_point(network):
    return network.add_constant((), np.int8(3)).get_output(0)


def test_quantizing_and_dequantizing_are_no_group_of_their_own():
    network = relu_between()
    assert [layer.name for layer in network if find_quantized_group(layer)] == ["relu"]
