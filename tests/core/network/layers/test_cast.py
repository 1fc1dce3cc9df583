"""Cast: any type to any other."""

import pytest

from dryfit.network.data_types import DataType
from dryfit.network.network import Network


@pytest.mark.parametrize("dtype", DataType)
def test_the_output_has_the_type_that_is_asked_for(dtype):
    network = Network()
    layer = network.add_cast(network.add_input("x", DataType.HALF, (2, -1)), dtype)
    assert (layer.get_output(0).shape, layer.get_output(0).dtype) == ((2, -1), dtype)
    layer.to_type = DataType.INT8
    assert layer.get_output(0).dtype is DataType.INT8
