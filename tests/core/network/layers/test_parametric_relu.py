import pytest

from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType

from .building import network_with


def test_slopes_broadcast_to_the_input():
    network, x, slopes = network_with((-1, 3, 4, 4), (1, 3, 1, 1))
    assert network.add_parametric_relu(x, slopes).get_output(0).shape == (-1, 3, 4, 4)


def test_the_input_does_not_broadcast_to_the_slopes():
    network, x, slopes = network_with((1, 3), (2, 3))
    with pytest.raises(NetworkError, match=r"slopes \(2, 3\) for an input of \(1, 3\)"):
        network.add_parametric_relu(x, slopes)


def test_unequal_types_are_refused():
    network, x, slopes = network_with((2,), (2,), dtype=[DataType.HALF, DataType.FLOAT])
    with pytest.raises(NetworkError, match="HALF and FLOAT"):
        network.add_parametric_relu(x, slopes)
