"""Small networks and configs for the builder's tests."""

from __future__ import annotations

import numpy as np

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag, DeviceType
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.network import Network


def weights(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def named(layer, name):
    """Give a layer a name, and its first output the same."""
    layer.network.rename_layer(layer, name)
    layer.network.rename_tensor(layer.get_output(0), name)
    return layer.get_output(0)


def image_network(shape=(1, 8, 6, 6), name="net", dtype=DataType.FLOAT):
    network = Network(name)
    return network, network.add_input("x", dtype, shape)


def convolution(network, x, name, maps=8, kernel=3, seed=0):
    layer = network.add_convolution_nd(x, maps, (kernel, kernel), weights(maps, x.shape[1], kernel, kernel, seed=seed))
    layer.padding_nd = (kernel // 2, kernel // 2)
    return named(layer, name)


def activation(network, x, name, kind=ActivationType.RELU):
    return named(network.add_activation(x, kind), name)


def elu(network, x, name):
    """A layer that the DLA does not have."""
    return activation(network, x, name, ActivationType.ELU)


def add(network, a, b, name):
    return named(network.add_elementwise(a, b, ElementWiseOperation.SUM), name)


def chain(*kinds, shape=(1, 8, 6, 6), dtype=DataType.FLOAT):
    """A network of layers one after another: `c` convolution, `r` ReLU, `e` ELU; named by kind and position."""
    network, x = image_network(shape, dtype=dtype)
    make = {"c": convolution, "r": activation, "e": elu}
    for position, kind in enumerate(kinds):
        x = make[kind](network, x, f"{kind}{position}")
    network.mark_output(x)
    return network


def half_network():
    """An FP16 network that the DLA takes as it is: c0, r1."""
    network = Network("half")
    x = network.add_input("x", DataType.HALF, (1, 8, 6, 6))
    network.mark_output(activation(network, convolution(network, x, "c0"), "r1"))
    return network


def dla_config(fallback=True, fp16=True):
    config = BuilderConfig()
    config.default_device_type = DeviceType.DLA
    if fp16:
        config.set_flag(BuilderFlag.FP16)
    config.allow_gpu_fallback(fallback)
    return config


def fp16_config():
    config = BuilderConfig()
    config.set_flag(BuilderFlag.FP16)
    return config
