import pytest

from dryfit.errors import NetworkError

from .building import network_with


def test_negative_counts_crop():
    network, x = network_with((-1, 3, 8, -1))
    layer = network.add_padding_nd(x, (1, 2), (-3, 0))
    assert (layer.pre_padding_nd, layer.post_padding_nd) == ((1, 2), (-3, 0))
    assert layer.get_output(0).shape == (-1, 3, 6, -1)


@pytest.mark.parametrize(
    ("pre", "post", "message"),
    [
        ((-4, 0), (-4, 0), "leaves nothing"),
        ((-9, 0), (5, 0), "leaves nothing"),
        ((1,), (1,), r"pre \(1,\), post \(1,\) for an input of \(1, 8, 8\); allowed: 2 values"),
    ],
)
def test_what_does_not_fit_is_refused_with_both_values(pre, post, message):
    network, x = network_with((1, 8, 8))
    with pytest.raises(NetworkError, match=message):
        network.add_padding_nd(x, pre, post)
