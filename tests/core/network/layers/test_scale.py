import numpy as np
import pytest

from dryfit.errors import NetworkError
from dryfit.network.layers.activation import ScaleMode

from .building import network_with


@pytest.mark.parametrize(
    ("mode", "axis", "size"),
    [
        (ScaleMode.UNIFORM, 1, 1),
        (ScaleMode.CHANNEL, 1, 3),
        (ScaleMode.CHANNEL, 2, 4),
        (ScaleMode.ELEMENTWISE, 1, 60),
    ],
)
def test_the_mode_and_the_axis_say_how_many_coefficients_there_are(mode, axis, size):
    network, x = network_with((2, 3, 4, 5))
    layer = network.add_scale_nd(x, mode, scale=np.ones(size), channel_axis=axis)
    assert layer.get_output(0).shape == (2, 3, 4, 5)
    with pytest.raises(NetworkError, match=f"`shift`.*mode {mode.name}.*found {size + 1}; allowed: {size}"):
        network.add_scale_nd(x, mode, shift=np.ones(size + 1), channel_axis=axis)


def test_the_channels_are_axis_1_where_none_is_given():
    network, x = network_with((2, 3, 4))
    assert network.add_scale(x, ScaleMode.CHANNEL, np.zeros(3), np.ones(3)).channel_axis == 1


def test_a_channel_axis_that_is_not_there_is_refused():
    network, x = network_with((2, 3))
    with pytest.raises(NetworkError, match=r"axis 2 of shape \(2, 3\)"):
        network.add_scale_nd(x, ScaleMode.CHANNEL, channel_axis=2)


def test_dynamic_extents_are_not_counted():
    network, x = network_with((-1, -1, 4))
    assert network.add_scale(x, ScaleMode.CHANNEL, scale=np.ones(7)).get_output(0).shape == (-1, -1, 4)
