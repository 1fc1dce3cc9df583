"""Explicitly quantized networks as engines: which kernels run them, on every device, saved and loaded."""

from __future__ import annotations

import numpy as np
import pytest

import dryfit
from dryfit.network.layers.convolution import Convolution
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.reference.registry import evaluate


def constant(network, values):
    return network.add_constant(values.shape, values).get_output(0)


def quantized(network, x, scale):
    """A tensor quantized and dequantized."""
    factor = constant(network, np.array(scale, np.float32))
    return network.add_dequantize(network.add_quantize(x, factor).get_output(0), factor).get_output(0)


def convolution(network, x, seed, groups=1):
    """A 3x3 convolution with INT8 weights and a scale a channel."""
    generator, C = np.random.default_rng(seed), x.shape[1]
    weights = generator.integers(-127, 128, (C, C // groups, 3, 3)).astype(np.int8)
    scales = generator.uniform(0.5, 1.5, C).astype(np.float32) / np.float32(40 * np.sqrt(weights[0].size))
    real = network.add_dequantize(constant(network, weights), constant(network, scales))
    real.axis = 0
    layer = Convolution(
        num_output_maps=C,
        kernel_size_nd=(3, 3),
        num_groups=groups,
        bias=generator.standard_normal(C).astype(np.float32),
        pre_padding=(1, 1),
        post_padding=(1, 1),
    )
    return network.add_layer(layer, [x, real.get_output(0)]).get_output(0)


def residual_network():
    """Two convolutions and a depthwise one with a sum, each result quantized; the sum is of two scales."""
    network = dryfit.Network("residual")
    x = quantized(network, network.add_input("x", dryfit.DataType.FLOAT, (1, 32, 9, 14)), 0.03)
    y = network.add_activation(convolution(network, x, 0), dryfit.ActivationType.RELU).get_output(0)
    y = quantized(network, convolution(network, quantized(network, y, 0.02), 1, groups=32), 0.025)
    total = network.add_elementwise(y, x, ElementWiseOperation.SUM).get_output(0)
    total = network.add_activation(quantized(network, total, 0.04), dryfit.ActivationType.RELU).get_output(0)
    network.mark_output(quantized(network, total, 0.03))
    return network


def built(network, device):
    config = dryfit.Builder().create_builder_config()
    config.default_device_type = device
    config.set_flag(dryfit.BuilderFlag.INT8)
    return dryfit.Builder().build_engine(network, config)


def outputs(engine, x, threads=1):
    return next(iter(engine.create_execution_context(num_threads=threads).run({"x": x}).values()))


@pytest.fixture(scope="module")
def picture():
    return np.random.default_rng(5).standard_normal((1, 32, 9, 14)).astype(np.float32)


def test_every_layer_between_two_quantizations_runs_in_integers():
    kernels = [operation.kernel for operation in built(residual_network(), dryfit.DeviceType.CPU).plan.operations]
    # Which of the two convolves 3x3 depends on the processor; their bits are the same.
    assert [name.replace("winograd", "convolution") for name in kernels] == [
        "cpu.quantization",
        "cpu.integer_convolution",
        "cpu.integer_depthwise_convolution",
        "cpu.quantization",
    ]


def test_a_saved_engine_gives_the_same_bits_with_any_number_of_threads(picture, tmp_path):
    engine = built(residual_network(), dryfit.DeviceType.CPU)
    engine.save(tmp_path / "quantized.engine")
    loaded = dryfit.Engine.load(tmp_path / "quantized.engine")
    expected = outputs(engine, picture)
    np.testing.assert_array_equal(outputs(loaded, picture), expected)
    np.testing.assert_array_equal(outputs(loaded, picture, threads=3), expected)


def test_devices_that_round_alike_give_the_same_bits(picture):
    on_cpu, on_gpu = (
        outputs(built(residual_network(), device), picture) for device in (dryfit.DeviceType.CPU, dryfit.DeviceType.GPU)
    )
    np.testing.assert_array_equal(on_gpu, on_cpu)


def test_results_are_those_of_the_layers_but_for_ties(picture):
    network, values = residual_network(), {"x": picture}
    for layer in network.layers:
        results = evaluate(layer, [values[tensor.name] for tensor in layer.inputs])
        values.update((tensor.name, array) for tensor, array in zip(layer.outputs, results, strict=True))
    expected = values[network.outputs[0].name]
    difference = np.abs(outputs(built(network, dryfit.DeviceType.CPU), picture) - expected)
    assert difference.max() <= 0.0601
    assert (difference > 0).mean() < 0.02
