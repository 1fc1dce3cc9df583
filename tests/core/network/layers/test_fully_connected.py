import numpy as np
import pytest

from dryfit.errors import NetworkError

from .building import network_with


def test_the_last_three_axes_are_summed_over():
    network, x = network_with((-1, 3, 4, 5))
    layer = network.add_fully_connected(x, 7, np.zeros((7, 60), np.float32))
    assert layer.get_output(0).shape == (-1, 7, 1, 1)
    assert layer.type == "FULLY_CONNECTED"


def test_a_kernel_of_another_size_is_refused_with_both_sizes():
    network, x = network_with((1, 3, 4, 5))
    with pytest.raises(NetworkError, match=r"found \(7, 61\); allowed: \(7, 60\)"):
        network.add_fully_connected(x, 7, np.zeros((7, 61), np.float32))


def test_an_input_of_two_axes_is_refused():
    network, x = network_with((4, 5))
    with pytest.raises(NetworkError, match=r"found \(4, 5\); allowed: rank 3 or more"):
        network.add_fully_connected(x, 7, np.zeros((7, 5), np.float32))
