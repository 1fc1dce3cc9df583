"""Networks small enough to read, for tests of engines."""

from __future__ import annotations

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor


def named(network: Network, layer, name: str) -> Tensor:
    """Give a layer a name, and its first output the same; return the output."""
    network.rename_layer(layer, name)
    network.rename_tensor(layer.get_output(0), f"{name}_out")
    return layer.get_output(0)


def convolution_network(batch: int = -1, seed: int = 0) -> Network:
    """x[batch, 3, 8, 8] -> convolution `conv` -> RELU `relu` -> y[batch, 4, 8, 8]."""
    rng = np.random.default_rng(seed)
    network = Network("tiny")
    x = network.add_input("x", DataType.FLOAT, (batch, 3, 8, 8))
    weights = rng.standard_normal((4, 3, 3, 3)).astype(np.float32)
    convolution = network.add_convolution_nd(x, 4, (3, 3), weights, rng.standard_normal(4).astype(np.float32))
    convolution.padding_nd = (1, 1)
    y = named(network, convolution, "conv")
    relu = network.add_activation(y, ActivationType.RELU)
    network.mark_output(named(network, relu, "relu"))
    network.rename_tensor(relu.get_output(0), "y")
    return network


def relu_network(shape: tuple[int, ...] = (2, 3), dtype: DataType = DataType.FLOAT) -> Network:
    """x -> RELU `relu` -> y."""
    network = Network("relu only")
    x = network.add_input("x", dtype, shape)
    relu = network.add_activation(x, ActivationType.RELU)
    network.mark_output(named(network, relu, "relu"))
    network.rename_tensor(relu.get_output(0), "y")
    return network
