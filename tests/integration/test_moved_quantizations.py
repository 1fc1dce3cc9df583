"""What quantizations moved over runs on codes in engines: the same bits as the layers one by one, under known names."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.passes.quantization.small_qdq import (
    convolution,
    network_with_input,
    pair,
    pooling,
    quantize,
    relu,
    transposed,
)
from tests.core.passes.quantized_networks import named

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.building import Builder
from dryfit.reference.executor import run_reference


def joined_network():
    """Two quantized poolings joined, a part of them turned, a ReLU; the codes of the end are an output too."""
    network, x = network_with_input(shape=(1, 4, 6, 6))
    left = pooling(network, pair(network, x, "a", 0.125), "left")
    right = relu(network, pooling(network, convolution(network, left, "conv"), "right"), "cut")
    both = network.add_concatenation([left, pair(network, right, "b", 0.125)])
    both.axis = 1
    part = network.add_slice(named(both, "both"), (0, 2, 0, 0), (1, 4, 6, 6), (1, 1, 1, 1))
    turned = transposed(network, named(part, "part"), "turned")
    network.mark_output(quantize(network, turned, "codes", 0.125))
    return network


@pytest.mark.parametrize("device", ["CPU", "GPU"])
def test_an_engine_gives_the_bits_of_the_network_as_it_was_written(device):
    config = BuilderConfig()
    config.default_device_type = device
    network = joined_network()
    engine = Builder().build_engine(network, config)
    # Sums of products of whole numbers and powers of two are exact in any order.
    x = np.random.default_rng(1).integers(-200, 200, (1, 4, 6, 6)).astype(np.float32) / 16
    expected = run_reference(network, {"x": x})
    found = engine.create_execution_context().run({"x": x})
    assert list(found) == ["codes"]
    assert np.abs(found["codes"].astype(int) - expected["codes"]).max() == 0
    kernels = {layer: operation.kernel for operation in engine.plan.operations for layer in operation.layers}
    assert {name: kernels[name] for name in ("left", "right", "cut", "both", "part", "turned")} == {
        "left": "cpu.pooling",
        "right": "cpu.pooling",
        "cut": "cpu.code_activation",
        "both": "cpu.concatenation",
        "part": "cpu.movement",
        "turned": "cpu.movement",
    }
    assert [kernels[name] for name in ("a.q", "conv", "b.q")] == [
        "cpu.quantization",
        "cpu.integer_convolution",
        "cpu.integer_convolution",
    ]
