"""Shapes, types and checks of activations."""

from __future__ import annotations

import pytest

from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType

from .building import network_with


@pytest.mark.parametrize("dtype", [DataType.FLOAT, DataType.HALF, DataType.BF16, DataType.INT8, DataType.FP8])
def test_shape_and_type_are_the_inputs(dtype):
    network, x = network_with((2, -1, 4), dtype=dtype)
    output = network.add_activation(x, ActivationType.RELU).get_output(0)
    assert (output.shape, output.dtype) == ((2, -1, 4), dtype)


@pytest.mark.parametrize("dtype", [DataType.INT32, DataType.BOOL, DataType.UINT8])
def test_other_types_are_refused(dtype):
    network, x = network_with((2,), dtype=dtype)
    with pytest.raises(NetworkError, match=f"floating-point or quantized.*found {dtype.name}"):
        network.add_activation(x, ActivationType.RELU)


def test_slopes_broadcast_to_the_input():
    network, x, slopes = network_with((-1, 3, 4, 4), (1, 3, 1, 1))
    assert network.add_parametric_relu(x, slopes).get_output(0).shape == (-1, 3, 4, 4)


def test_the_input_does_not_broadcast_to_the_slopes():
    network, x, slopes = network_with((1, 3), (2, 3))
    with pytest.raises(NetworkError, match=r"slopes \(2, 3\) for an input of \(1, 3\)"):
        network.add_parametric_relu(x, slopes)


def test_unequal_types_are_refused():
    network, x, slopes = network_with((2,), (2,), dtype=[DataType.HALF, DataType.FLOAT])
    with pytest.raises(NetworkError, match="FP16 and FP32"):
        network.add_parametric_relu(x, slopes)
