"""Scale layers that become part of INT8 weights."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.builder.designs import lowered
from tests.core.builder.networks import activation, convolution, image_network, named, weights

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.building import Builder
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ScaleMode
from dryfit.quantization.int8_weights import can_fold, folded

SHIFT, FACTOR = weights(8, seed=3), np.abs(weights(8, seed=4)) + np.float32(0.5)


def scaled(network, x, name, mode=ScaleMode.CHANNEL, **coefficients):
    given = {"shift": SHIFT, "scale": FACTOR, "power": None} | coefficients
    return named(network.add_scale(x, mode, given["shift"], given["scale"], given["power"]), name)


def int8_config():
    config = BuilderConfig()
    config.set_flag(BuilderFlag.INT8)
    return config


def with_ranges(network):
    network.layers[-1].set_output_type(0, DataType.INT8)
    for tensor in network.tensors:
        tensor.dynamic_range = (-6, 6)
    return network


def test_an_engine_is_the_one_of_weights_that_were_multiplied_by_hand():
    network, x = image_network()
    first = convolution(network, x, "convolution")
    network.mark_output(activation(network, scaled(network, first, "normalized"), "relu"))
    kernel = network.layer("convolution").kernel.astype(np.float64) * FACTOR.reshape(8, 1, 1, 1)
    other, y = image_network()
    layer = other.add_convolution_nd(y, 8, (3, 3), kernel.astype(np.float32), SHIFT)
    layer.padding_nd = (1, 1)
    other.mark_output(activation(other, named(layer, "convolution"), "relu"))
    values = weights(1, 8, 6, 6, seed=5)
    engines = [Builder().build_engine(with_ranges(one), int8_config()) for one in (network, other)]
    found, expected = (engine.create_execution_context().run(values)["relu"] for engine in engines)
    np.testing.assert_array_equal(found, expected)
    assert len(np.unique(found)) > 50
    assert [operation.name for operation in engines[0].plan.operations][1:] == ["convolution + relu"]


def test_the_nodes_of_the_scale_layer_are_told_of_the_layer_that_it_is_part_of():
    network, x = image_network()
    first = convolution(network, x, "convolution")
    network.mark_output(scaled(network, first, "normalized"))
    network.layer("normalized").onnx_nodes = ("BatchNormalization_1",)
    result = lowered(with_ranges(network), int8_config()).network
    assert [layer.name for layer in result.layers if layer.kind == "scale"] == []
    assert result.layer("convolution").onnx_nodes == ("BatchNormalization_1",)


def test_a_scale_layer_that_somebody_else_reads_before_stays():
    network, x = image_network()
    first = convolution(network, x, "convolution")
    network.mark_output(scaled(network, first, "normalized"))
    network.mark_output(first)
    network.layer("convolution").precision = network.layer("normalized").precision = DataType.INT8
    result = lowered(with_ranges(network), int8_config()).network
    assert [layer.name for layer in result.layers if layer.kind == "scale"] == ["normalized"]


@pytest.mark.parametrize(
    ("mode", "coefficients", "expected"),
    [
        (ScaleMode.CHANNEL, {}, True),
        (ScaleMode.UNIFORM, {"shift": SHIFT[:1], "scale": FACTOR[:1]}, True),
        (ScaleMode.CHANNEL, {"shift": None}, True),
        (ScaleMode.CHANNEL, {"power": np.ones(8, np.float32)}, True),
        (ScaleMode.CHANNEL, {"power": np.full(8, 2, np.float32)}, False),
        (ScaleMode.ELEMENTWISE, {"shift": None, "scale": weights(8, 6, 6)}, False),
    ],
)
def test_only_one_factor_a_channel_can_be_folded(mode, coefficients, expected):
    network, x = image_network()
    first = convolution(network, x, "convolution")
    scaled(network, first, "scaled", mode, **coefficients)
    assert can_fold(network.layer("convolution"), network.layer("scaled")) is expected


def test_a_scale_along_another_axis_cannot_be_folded():
    network, x = image_network((1, 8, 8, 8))
    scaled(network, convolution(network, x, "convolution"), "scaled")
    network.layer("scaled").channel_axis = 2
    assert not can_fold(network.layer("convolution"), network.layer("scaled"))


def test_weights_and_bias_are_computed_in_binary64_and_rounded_once():
    network, x = image_network((2, 8, 2, 2))
    layer = network.add_fully_connected(x, 8, weights(8, 32), weights(8, seed=1))
    layer.get_output(0)
    scaled(network, named(layer, "connected"), "scaled")
    kernel, bias = folded(layer, layer.kernel, network.layer("scaled"))
    exact = layer.kernel.astype(np.float64) * FACTOR.reshape(8, 1)
    np.testing.assert_array_equal(kernel, exact.astype(np.float32))
    np.testing.assert_array_equal(bias, (layer.bias.astype(np.float64) * FACTOR + SHIFT).astype(np.float32))
