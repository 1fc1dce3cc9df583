"""Weights as a device stores them are those that the engine gets."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.builder.designs import designed, lowered
from tests.core.builder.networks import activation, convolution, image_network, named, weights
from tests.core.builder.sparse_networks import int8_config, with_ranges

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.sparse_weights import is_explicit_int8, stored_weights
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ScaleMode


@pytest.mark.parametrize("device", ["DLA", "GPU"])
@pytest.mark.parametrize("is_scaled", [False, True])
def test_int8_weights_are_the_constant_of_the_engine(device, is_scaled):
    network, x = image_network()
    x = convolution(network, x, "convolution")
    if is_scaled:
        factors = np.linspace(-2, 3, 8, dtype=np.float32)
        x = named(network.add_scale(x, ScaleMode.CHANNEL, weights(8), factors, None), "normalized")
    network.mark_output(activation(network, x, "relu"))
    network.layers[-1].precision = network.layers[0].precision = DataType.INT8
    network.layers[-1].set_output_type(0, DataType.INT8)
    config = int8_config(device=device)
    design = designed(with_ranges(network), config)
    found = stored_weights(design.network.layer("convolution"), design.precisions)
    stored = lowered(network, config).network.layer("convolution").inputs[1].producer.inputs[0].spec.value
    assert found.dtype == np.int8
    np.testing.assert_array_equal(found, stored)
    assert len(np.unique(found)) > 50


def test_weights_of_a_layer_that_is_not_int8_are_the_real_ones():
    network, x = image_network()
    network.mark_output(convolution(network, x, "convolution"))
    design = designed(network, BuilderConfig())
    found = stored_weights(design.network.layer("convolution"), design.precisions)
    np.testing.assert_array_equal(found, network.layer("convolution").kernel)


def test_computed_weights_are_not_known():
    network, x = image_network()
    kernel = network.add_input("kernel", DataType.FLOAT, (8, 8, 3, 3))
    layer = network.add_convolution_nd(x, 8, (3, 3))
    layer.set_input(1, kernel)
    network.mark_output(layer.get_output(0))
    design = designed(network, BuilderConfig())
    assert stored_weights(design.network.layers[-1], design.precisions) is None
    assert stored_weights(network.add_identity(x), design.precisions) is None


@pytest.mark.parametrize("zero_point", [None, 3])
def test_weights_of_an_explicit_network_count_from_their_zero_point(zero_point):
    network, x = image_network()
    scale = network.add_constant((), np.float32(0.05)).get_output(0)
    values = np.full((8, 8, 3, 3), 3, np.int8)
    values[0, 0] = -128
    stored = network.add_constant(values.shape, values).get_output(0)
    dequantize = network.add_dequantize(stored, scale)
    if zero_point is not None:
        dequantize.set_input(2, network.add_constant((), np.int8(zero_point)).get_output(0))
    quantized = network.add_quantize(x, scale).get_output(0)
    layer = network.add_convolution_nd(network.add_dequantize(quantized, scale).get_output(0), 8, (3, 3))
    layer.set_input(1, dequantize.get_output(0))
    found = stored_weights(layer, designed(network_with_output(network, layer), BuilderConfig()).precisions)
    np.testing.assert_array_equal(found, values.astype(int) - (zero_point or 0))
    assert is_explicit_int8(layer)


def network_with_output(network, layer):
    network.mark_output(layer.get_output(0))
    return network
