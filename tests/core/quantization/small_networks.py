"""A network whose tensors have values that anyone can compute."""

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.network import Network


def doubling_network():
    """`y = 2 relu(x)`, and the place of the largest y as an integer tensor."""
    network = Network("doubling")
    x = network.add_input("x", DataType.FLOAT, (-1, 2))
    relu = network.add_activation(x, ActivationType.RELU).get_output(0)
    double = network.add_elementwise(relu, relu, ElementWiseOperation.SUM).get_output(0)
    count = network.add_shape(double).get_output(0)
    for tensor, name in ((relu, "relu"), (double, "y"), (count, "shape")):
        network.rename_tensor(tensor, name)
    network.mark_output(double)
    network.mark_output(count)
    return network


SAMPLES = [
    {"x": np.array([[-3.0, 0.5]], np.float32)},
    {"x": np.array([[1.0, -1.0], [0.0, 2.0]], np.float32)},
    {"x": np.array([[-8.0, -1.0]], np.float32)},
]
LARGEST = {"x": 8.0, "relu": 2.0, "y": 4.0}
"""The largest magnitude of each floating-point tensor over the samples."""
