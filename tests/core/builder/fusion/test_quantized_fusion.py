"""Which layers of a quantized network run as one, with the CPU target's kernels."""

from __future__ import annotations

import numpy as np
from tests.core.builder.networks import activation, add, image_network, named

from dryfit.builder.fusion.fuse import LayerPlace, fuse_layers
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType, ScaleMode
from dryfit.network.layers.convolution import Convolution
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.matrix import MatrixOperation
from dryfit.network.network import Network


def fused(network):
    """The groups, in the order in which they run."""
    places = {
        layer.name: LayerPlace("CPU", 0, layer.outputs[0].dtype) for layer in network.layers if layer.kind != "constant"
    }
    return fuse_layers(network, places)


def groups(network):
    """Layer names of each group, in the order in which they run."""
    return [[layer.name for layer in one.group.layers] for one in fused(network)]


def constant(network, values):
    return network.add_constant(values.shape, values).get_output(0)


def quantized(network, x, name, scale=0.5):
    """The tensor quantized and dequantized, by layers NAME.q and NAME.dq."""
    factor = constant(network, np.array(scale, np.float32))
    bytes_ = named(network.add_quantize(x, factor), f"{name}.q")
    return named(network.add_dequantize(bytes_, factor), f"{name}.dq")


def convolution(network, x, name):
    """A convolution NAME with an INT8 weight, which NAME.w dequantizes."""
    weights = constant(network, np.ones((8, 8, 1, 1), np.int8))
    real = named(network.add_dequantize(weights, constant(network, np.array(0.1, np.float32))), f"{name}.w")
    layer = network.add_layer(Convolution(num_output_maps=8, kernel_size_nd=(1, 1)), [x, real])
    return named(layer, name)


def test_a_quantized_layer_is_one_group_from_its_dequantizations_to_its_quantization():
    network, x = image_network()
    y = convolution(network, quantized(network, x, "x"), "c")
    network.mark_output(quantized(network, y, "y"))
    assert groups(network) == [["x.q"], ["x.dq", "c.w", "c", "y.q"], ["y.dq"]]


def test_a_dequantization_is_repeated_in_every_group_that_reads_through_it():
    network, x = image_network()
    x = quantized(network, x, "x")
    for name in "cd":
        network.mark_output(quantized(network, convolution(network, x, name), f"{name}'"))
    assert groups(network) == [
        ["x.q"], ["x.dq", "c.w", "c", "c'.q"], ["c'.dq"], ["x.dq", "d.w", "d", "d'.q"], ["d'.dq"]
    ]  # fmt: skip


def test_a_dequantization_whose_real_numbers_are_read_runs_too():
    network, x = image_network()
    x = quantized(network, x, "x")
    network.mark_output(convolution(network, x, "c"))
    network.mark_output(named(network.add_softmax(x), "s"))
    assert groups(network) == [["x.q"], ["x.dq"], ["x.dq", "c.w", "c"], ["s"]]


def test_a_dequantized_output_of_the_network_runs():
    network, x = image_network()
    x = quantized(network, x, "x")
    network.mark_output(x)
    network.mark_output(convolution(network, x, "c"))
    assert ["x.dq"] in groups(network)


def test_what_only_rounds_again_joins_the_group_before_it():
    network, x = image_network()
    x = quantized(network, x, "x")
    y = quantized(network, convolution(network, x, "c"), "y")
    total = quantized(network, add(network, y, x, "sum"), "s")
    network.mark_output(quantized(network, activation(network, total, "relu"), "z"))
    assert groups(network) == [
        ["x.q"],
        ["x.dq", "c.w", "c", "y.q", "y.dq", "sum", "s.q", "s.dq", "relu", "z.q"],
        ["z.dq"],
    ]


def test_a_sum_joins_the_branch_that_is_ready_last():
    network, x = image_network()
    x = quantized(network, x, "x")
    a, b = (quantized(network, convolution(network, x, name), f"{name}'") for name in "ab")
    network.mark_output(quantized(network, add(network, a, b, "sum"), "s"))
    assert groups(network)[2] == ["x.dq", "b.w", "b", "b'.q", "a'.dq", "b'.dq", "sum", "s.q"]


def test_a_quantized_tensor_that_two_read_is_stored():
    network, x = image_network()
    y = quantized(network, convolution(network, quantized(network, x, "x"), "c"), "y")
    for name in "ab":
        network.mark_output(quantized(network, activation(network, y, name), f"{name}'"))
    assert groups(network) == [
        ["x.q"], ["x.dq", "c.w", "c", "y.q"], ["y.dq", "a", "a'.q"], ["a'.dq"], ["y.dq", "b", "b'.q"], ["b'.dq"]
    ]  # fmt: skip


def test_a_layer_with_a_real_input_stays_real_and_reads_its_weights_quantized():
    network, x = image_network()
    y = convolution(network, x, "c")
    network.mark_output(quantized(network, y, "y"))
    assert groups(network) == [["c.w", "c"], ["y.q"], ["y.dq"]]
    (weighted, *_) = fused(network)
    assert weighted.place.precision is DataType.FLOAT


def doubly_quantized_product(network, x, name):
    """A product NAME with FP4 weights by FP8 scales, which NAME.s dequantizes for NAME.w."""
    scales = constant(network, np.ones((64, 8), DataType.FP8.numpy))
    wide = named(network.add_dequantize(scales, constant(network, np.array(0.1, np.float32))), f"{name}.s")
    codes = constant(network, np.ones((64, 128), DataType.FP4.numpy))
    weights = named(network.add_dequantize(codes, wide), f"{name}.w")
    product = network.add_matrix_multiply(x, MatrixOperation.NONE, weights, MatrixOperation.TRANSPOSE)
    return named(product, name), weights


def test_dequantizations_of_scales_are_part_of_the_group_too():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (3, 128))
    network.mark_output(doubly_quantized_product(network, x, "p")[0])
    assert groups(network) == [["p.s", "p.w", "p"]]


def test_scales_are_dequantized_once_more_for_whoever_reads_the_weights_in_real_numbers():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (3, 128))
    product, weights = doubly_quantized_product(network, x, "p")
    network.mark_output(product)
    network.mark_output(named(network.add_activation(weights, ActivationType.RELU), "r"))
    assert groups(network) == [["p.s"], ["p.w"], ["p.s", "p.w", "p"], ["r"]]


def test_a_group_of_quantized_values_counts_as_int8():
    network, x = image_network()
    network.mark_output(convolution(network, quantized(network, x, "x"), "c"))
    places = {layer.name: LayerPlace("CPU", 0, DataType.FLOAT) for layer in network.layers if layer.kind != "constant"}
    assert [one.place.precision for one in fuse_layers(network, places)] == [DataType.FLOAT, DataType.INT8]


def test_a_layer_without_weights_takes_quantized_values_only_where_it_gives_such():
    network, x = image_network()
    x = quantized(network, x, "x")
    network.mark_output(activation(network, x, "r"))
    network.mark_output(quantized(network, activation(network, x, "s"), "s'"))
    assert groups(network) == [["x.q"], ["x.dq"], ["r"], ["x.dq", "s", "s'.q"], ["s'.dq"]]


def test_what_follows_the_last_quantization_of_a_layer_without_weights_reads_real_numbers():
    network, x = image_network()
    total = add(network, quantized(network, x, "x"), quantized(network, activation(network, x, "r"), "y"), "sum")
    network.mark_output(activation(network, quantized(network, total, "z"), "end"))
    assert groups(network) == [["x.q"], ["r"], ["y.q"], ["x.dq", "y.dq", "sum", "z.q"], ["z.dq"], ["end"]]


def test_a_real_operand_of_a_sum_keeps_the_result_real():
    network, x = image_network()
    real = activation(network, x, "r")
    total = add(network, real, convolution(network, quantized(network, x, "x"), "c"), "sum")
    network.mark_output(quantized(network, total, "y"))
    assert groups(network)[-3:] == [["x.dq", "c.w", "c", "sum"], ["y.q"], ["y.dq"]]


def test_a_quantized_operand_of_a_sum_lets_its_quantization_join():
    network, x = image_network()
    other = quantized(network, activation(network, x, "r"), "o")
    total = add(network, other, convolution(network, quantized(network, x, "x"), "c"), "sum")
    network.mark_output(quantized(network, total, "y"))
    assert groups(network)[-2:] == [["x.dq", "c.w", "c", "o.dq", "sum", "y.q"], ["y.dq"]]


def test_a_normalization_and_an_activation_follow_a_weighted_layer_in_their_order():
    network, x = image_network()
    y = convolution(network, quantized(network, x, "x"), "c")
    factor, shift = np.ones(8, np.float32), np.full(8, 0.5, np.float32)
    y = named(network.add_scale(y, ScaleMode.CHANNEL, shift, factor), "bn")
    network.mark_output(quantized(network, activation(network, y, "r"), "y"))
    assert groups(network)[1] == ["x.dq", "c.w", "c", "bn", "r", "y.q"]


def test_a_normalization_behind_an_activation_is_not_folded_over_it():
    network, x = image_network()
    y = activation(network, convolution(network, quantized(network, x, "x"), "c"), "r")
    y = named(network.add_scale(y, ScaleMode.UNIFORM, None, np.full(1, 2.0, np.float32)), "bn")
    network.mark_output(quantized(network, y, "y"))
    assert groups(network)[1:4] == [["x.dq", "c.w", "c", "r"], ["bn"], ["y.q"]]


def test_silu_behind_a_weighted_layer_is_computed_in_real_numbers():
    network, x = image_network()
    y = convolution(network, quantized(network, x, "x"), "c")
    gate = activation(network, y, "gate", ActivationType.SIGMOID)
    y = named(network.add_elementwise(y, gate, ElementWiseOperation.PROD), "silu")
    network.mark_output(quantized(network, y, "y"))
    assert groups(network)[1:4] == [["x.dq", "c.w", "c"], ["gate", "silu"], ["y.q"]]


def test_silu_of_a_quantized_tensor_is_one_group():
    network, x = image_network()
    x = quantized(network, x, "x")
    gate = activation(network, x, "gate", ActivationType.SIGMOID)
    y = named(network.add_elementwise(x, gate, ElementWiseOperation.PROD), "silu")
    network.mark_output(quantized(network, y, "y"))
    assert groups(network)[1] == ["x.dq", "gate", "silu", "y.q"]
