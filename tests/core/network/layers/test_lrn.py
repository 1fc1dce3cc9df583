import pytest

from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType

from .building import network_with


def test_the_arguments_come_in_tensorrts_order():
    network, x = network_with((1, -1, 4, 4))
    layer = network.add_lrn(x, 5, 1e-4, 0.75, 2.0)
    assert (layer.window_size, layer.alpha, layer.beta, layer.k) == (5, 1e-4, 0.75, 2.0)
    assert layer.get_output(0).shape == (1, -1, 4, 4)


def test_an_empty_window_and_integers_are_refused():
    network, x, y = network_with((1, 2, 4), (1, 2, 4), dtype=[DataType.FLOAT, DataType.INT32])
    with pytest.raises(NetworkError, match="found 0"):
        network.add_lrn(x, 0, 1, 1, 1)
    with pytest.raises(NetworkError, match="found INT32"):
        network.add_lrn(y, 3, 1, 1, 1)
