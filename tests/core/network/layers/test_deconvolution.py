import numpy as np
import pytest

from dryfit.errors import NetworkError
from dryfit.network.layers.window_layer import PaddingMode

from .building import network_with


def deconvolution(shape=(1, 4, 5, 5), **changes):
    network, x = network_with(shape)
    layer = network.add_deconvolution_nd(x, 6, (3, 3), np.zeros((4, 6, 3, 3), np.float32))
    for name, value in changes.items():
        setattr(layer, name, value)
    return layer.get_output(0)


def test_the_shape_is_the_one_whose_convolution_gives_the_input():
    assert deconvolution().shape == (1, 6, 7, 7)
    assert deconvolution(stride_nd=(2, 3)).shape == (1, 6, 11, 15)
    assert deconvolution(stride_nd=(2, 2), padding_nd=(1, 1)).shape == (1, 6, 9, 9)
    assert deconvolution(stride_nd=(2, 2), pre_padding=(1, 1), post_padding=(0, -1)).shape == (1, 6, 10, 11)
    assert deconvolution(dilation_nd=(2, 1)).shape == (1, 6, 9, 7)


@pytest.mark.parametrize("mode", [PaddingMode.SAME_UPPER, PaddingMode.SAME_LOWER])
def test_same_padding_multiplies_the_extents_by_the_stride(mode):
    assert deconvolution(stride_nd=(2, 3), padding_mode=mode).shape == (1, 6, 10, 15)


def test_dynamic_extents_stay_dynamic():
    assert deconvolution((-1, 4, 5, -1)).shape == (-1, 6, 7, -1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kernel": np.zeros((6, 4, 3, 3))}, r"found \(6, 4, 3, 3\); allowed: \(4, 6, 3, 3\)"),
        ({"bias": np.zeros(4)}, r"bias does not fit.*found \(4,\); allowed: \(6,\)"),
        ({"num_groups": 4}, "4 in, 6 out, 4 groups"),
        ({"pre_padding": (4, 0), "post_padding": (3, 0)}, r"leave nothing.*\(0, 7\)"),
        ({"stride_nd": (0, 1)}, "at least 1"),
    ],
)
def test_what_does_not_fit_is_refused_with_both_values(change, message):
    with pytest.raises(NetworkError, match=message):
        _ = deconvolution(**change).shape
