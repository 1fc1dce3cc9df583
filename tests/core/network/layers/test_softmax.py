import pytest

from dryfit.errors import NetworkError

from .building import network_with


@pytest.mark.parametrize(("shape", "axes"), [((5,), 1), ((2, 5), 1), ((2, 3, 5), 1), ((1, 3, 4, 5), 2), ((1,) * 5, 4)])
def test_the_default_axis_is_the_third_from_the_end(shape, axes):
    network, x = network_with(shape)
    assert network.add_softmax(x).axes == axes


@pytest.mark.parametrize("axes", [0, 0b11, 0b10000, -1])
def test_a_mask_that_is_not_one_axis_of_the_input_is_refused(axes):
    network, x = network_with((1, 2, 3, 4))
    layer = network.add_softmax(x)
    layer.axes = axes
    with pytest.raises(NetworkError, match=f"found {bin(axes)}"):
        _ = layer.get_output(0).shape
