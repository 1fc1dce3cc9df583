"""Small networks for the passes, with names: layers NAME.q and NAME.dq, scales NAME.q_scale and NAME.dq_scale."""

from __future__ import annotations

import numpy as np
from tests.core.passes.quantized_networks import named

from dryfit.network.copying import copy_network
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.convolution import Convolution
from dryfit.network.layers.window_layer import PoolingType
from dryfit.network.network import Network
from dryfit.network.verify import check
from dryfit.passes.canonical import quantization_passes
from dryfit.passes.pipeline import Pipeline
from dryfit.passes.simplify import remove_dead_layers
from dryfit.reference.executor import run_reference

SHAPE = (1, 4, 4, 4)


def network_with_input(dtype=DataType.FLOAT, shape=SHAPE):
    network = Network("small")
    return network, network.add_input("x", dtype, shape)


def constant(network, values, name, dtype=np.float32):
    array = np.asarray(values, dtype)
    return named(network.add_constant(array.shape, array), name)


def quantize(network, x, name, scale=0.1, axis=-1, dtype=DataType.INT8):
    layer = network.add_quantize(x, constant(network, scale, f"{name}_scale"), dtype)
    layer.axis = axis
    return named(layer, name)


def dequantize(network, x, name, scale=0.1, axis=-1, dtype=DataType.FLOAT):
    layer = network.add_dequantize(x, constant(network, scale, f"{name}_scale"), dtype)
    layer.axis = axis
    return named(layer, name)


def pair(network, x, name, scale=0.1):
    return dequantize(network, quantize(network, x, f"{name}.q", scale), f"{name}.dq", scale)


def convolution(network, x, name):
    """With weights in real numbers, quantized by NAME.w.q and dequantized by NAME.w.dq."""
    weights = constant(network, np.linspace(-1, 1, 16).reshape(4, 4, 1, 1), f"{name}.w")
    layer = Convolution(num_output_maps=4, kernel_size_nd=(1, 1))
    return named(network.add_layer(layer, [x, pair(network, weights, f"{name}.w", 0.01)]), name)


def pooling(network, x, name, kind=PoolingType.MAX):
    layer = network.add_pooling_nd(x, kind, (3, 3))
    layer.padding_nd = (1, 1)
    return named(layer, name)


def relu(network, x, name):
    return named(network.add_activation(x, ActivationType.RELU), name)


def transposed(network, x, name, order=(0, 1, 3, 2)):
    layer = network.add_shuffle(x)
    layer.first_transpose = order
    return named(layer, name)


def optimized(network, **settings):
    """The network after the passes, and the journal; it computes the same, where it has 3 for dynamic extents."""
    rewritten = copy_network(network)
    journal = Pipeline([*quantization_passes(**settings), remove_dead_layers]).run(rewritten).found.rewrites
    check(rewritten)
    generator = np.random.default_rng(0)
    values = {
        tensor.name: generator.standard_normal([3 if extent < 0 else extent for extent in tensor.shape]).astype(
            tensor.dtype.numpy
        )
        for tensor in network.inputs
    }
    expected, found = run_reference(network, values), run_reference(rewritten, values)
    assert list(found) == list(expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
    return rewritten, journal


def chain(network):
    """The layers that compute, in order, by name."""
    return [layer.name for layer in network if layer.kind != "constant"]


def steps(journal, layer):
    """What became of a layer: (action, over)."""
    return [(step.action.name, step.over) for step in journal.of(layer)]
