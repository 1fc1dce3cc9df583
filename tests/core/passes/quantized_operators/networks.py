"""Networks with Q/DQ of zero points and channels, whose scales are powers of two, so that real numbers are exact."""

from __future__ import annotations

import numpy as np
from tests.core.passes.quantized_networks import named

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import Activation, ActivationType
from dryfit.network.layers.convolution import Convolution
from dryfit.network.layers.generators import Constant
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.network import Network


def constant(network, value, dtype, name=""):
    """A constant tensor."""
    array = np.asarray(value, dtype)
    return network.add_layer(Constant(name=name, weights=array, shape=array.shape), []).outputs[0]


def q(network, x, scale, zero_point=0, dtype=np.int8, name=""):
    """The tensor quantized; without a zero point input where that is 0."""
    layer = Quantize(to_type=DataType.from_numpy(np.dtype(dtype)))
    return _connected(network, layer, x, scale, zero_point, dtype, name)


def dq(network, x, scale, zero_point=0, axis=-1, name=""):
    """The tensor in real numbers."""
    return _connected(network, Dequantize(axis=axis), x, scale, zero_point, x.dtype.numpy, name)


def _connected(network, layer, x, scale, zero_point, dtype, name):
    inputs = [x, constant(network, scale, np.float32)]
    if np.any(zero_point):
        inputs.append(constant(network, zero_point, dtype))
    output = network.add_layer(layer, inputs).outputs[0]
    return named(layer, name) if name else output


def convolution_network(bias=None, activation=None, dtype=np.int8, bias_codes=None, weights_zero_point=0):
    """x (real) -> x_codes -> conv, scales a channel, [activation] -> y_codes -> y (real)."""
    rng = np.random.default_rng(0)
    network = Network("quantized convolution")
    x = network.add_input("x", DataType.FLOAT, (1, 2, 5, 5))
    codes = q(network, x, 0.25, 3, dtype, "x_codes")
    weights = constant(network, rng.integers(-20, 21, (3, 2, 3, 3)), np.int8)
    scales = np.array([0.5, 0.25, 0.125], np.float32)
    real_weights = dq(network, weights, scales, weights_zero_point, axis=0, name="w_real")
    inputs = [dq(network, codes, 0.25, 3, name="x_real"), real_weights]
    if bias_codes is not None:
        inputs.append(dq(network, constant(network, bias_codes, np.int32), 0.25 * scales, axis=0, name="b_real"))
    layer = Convolution(num_output_maps=3, kernel_size_nd=(3, 3), bias=bias)
    y = named(network.add_layer(layer, inputs), "conv")
    if activation is not None:
        y = named(network.add_layer(activation, [y]), "bound")
    network.mark_output(dq(network, q(network, y, 1.0, -2, np.int8, "y_codes"), 1.0, -2, name="y"))
    return network


def relu6():
    """ReLU6 as a clip."""
    return Activation(activation_type=ActivationType.CLIP, alpha=0.0, beta=6.0)


def feeds(network):
    """Real numbers for each input, codes for each quantized one."""
    rng = np.random.default_rng(1)
    return {
        tensor.name: rng.integers(0, 100, tensor.shape).astype(tensor.dtype.numpy)
        if tensor.dtype in (DataType.INT8, DataType.UINT8)
        else rng.normal(size=tensor.shape).astype(np.float32) * 8
        for tensor in network.inputs
    }
