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
