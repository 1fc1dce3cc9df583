"""Shapes, types and checks of convolutions, deconvolutions and fully connected layers."""

from __future__ import annotations

import numpy as np
import pytest

from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layers.window_layer import PaddingMode
from dryfit.network.network import Network
from dryfit.network.weights import Weights

from .building import network_with


def kernel(*shape):
    return np.zeros(shape, np.float32)


def test_parameters_have_tensorrts_names_and_defaults():
    network, x = network_with((1, 3, 8, 8))
    layer = network.add_convolution_nd(x, 4, (3, 3), kernel(4, 3, 3, 3))
    assert (layer.stride_nd, layer.dilation_nd, layer.padding_nd, layer.num_groups) == ((1, 1), (1, 1), (0, 0), 1)
    assert layer.padding_mode is PaddingMode.EXPLICIT_ROUND_DOWN
    assert (layer.type, layer.kind, layer.name) == ("CONVOLUTION", "convolution", "(Unnamed Layer* 0) [Convolution]")
    assert not layer.is_host_only


def test_the_shape_follows_each_change():
    network, x = network_with((1, 3, 8, 9))
    layer = network.add_convolution_nd(x, 4, (3, 3), kernel(4, 3, 3, 3))
    output = layer.get_output(0)
    assert output.shape == (1, 4, 6, 7)
    layer.padding_nd = (1, 1)
    assert output.shape == (1, 4, 8, 9)
    layer.stride_nd = (2, 2)
    assert output.shape == (1, 4, 4, 5)
    layer.dilation_nd = (2, 2)
    assert output.shape == (1, 4, 3, 4)
    layer.padding_mode = PaddingMode.EXPLICIT_ROUND_UP
    assert output.shape == (1, 4, 4, 4)
    layer.padding_mode = PaddingMode.SAME_LOWER
    assert output.shape == (1, 4, 4, 5)


def test_dynamic_extents_stay_dynamic_for_convolution():
    network, x = network_with((-1, 3, -1, 8))
    layer = network.add_convolution_nd(x, 4, (3, 3), kernel(4, 3, 3, 3))
    assert layer.get_output(0).shape == (-1, 4, -1, 6)


def test_the_kernel_may_be_connected_later():
    network, x, weights = network_with((1, 2, 5, 5), (4, 2, 3, 3))
    layer = network.add_convolution_nd(x, 4, (3, 3))
    layer.set_input(1, weights)
    assert layer.get_output(0).shape == (1, 4, 3, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"kernel": kernel(4, 2, 3, 3)},
            r"The kernel has the wrong shape.*found \(4, 2, 3, 3\); allowed: \(4, 3, 3, 3\)",
        ),
        ({"bias": kernel(3)}, r"The bias has the wrong shape.*found \(3,\); allowed: \(4,\)"),
        ({"num_groups": 2}, "3 in, 4 out, 2 groups"),
        ({"num_groups": 0}, "4 maps, 0 groups"),
        ({"stride_nd": (0, 1)}, r"`stride_nd` is too small.*found \(0, 1\); allowed: at least 1"),
        ({"stride_nd": (1, 1, 1)}, r"`stride_nd` must have one value per spatial axis.*allowed: 2 values"),
        ({"pre_padding": (-1, 0)}, r"`pre_padding` is too small.*at least 0"),
        ({"dilation_nd": (8, 1)}, r"larger than the padded input.*kernel \(3, 3\) on an input of \(1, 3, 8, 8\)"),
    ],
)
def test_what_does_not_fit_is_refused_with_both_values_for_convolution(change, message):
    network, x = network_with((1, 3, 8, 8))
    layer = network.add_convolution_nd(x, 4, (3, 3), kernel(4, 3, 3, 3))
    layer.name = "conv1"
    for name, value in change.items():
        setattr(layer, name, value)
    with pytest.raises(NetworkError, match=message) as caught:
        _ = layer.get_output(0).shape
    assert "layer 'conv1' (convolution)" in str(caught.value)


def test_groups_and_paddings_may_be_set_after_adding():
    network, x = network_with((1, 4, 2, 2))
    layer = network.add_convolution_nd(x, 4, (3, 3), kernel(4, 1, 3, 3))
    output = layer.get_output(0)
    with pytest.raises(NetworkError, match=r"found \(4, 1, 3, 3\); allowed: \(4, 4, 3, 3\)"):
        _ = output.shape
    layer.num_groups = 4
    with pytest.raises(NetworkError, match="larger than the padded input"):
        _ = output.shape
    layer.padding_nd = (1, 1)
    assert output.shape == (1, 4, 2, 2)
    # What comes behind an unfinished layer cannot be added before.
    layer.num_groups = 1
    with pytest.raises(NetworkError, match="The kernel has the wrong shape"):
        network.add_softmax(output)
    assert network.num_layers == 1


def test_a_window_of_another_rank_is_refused():
    network, x = network_with((1, 3, 8))
    with pytest.raises(NetworkError, match=r"rank 3 with a kernel_size_nd of \(3, 3\); allowed: rank 4"):
        network.add_convolution_nd(x, 4, (3, 3), kernel(4, 3, 3, 3))
    assert network.num_layers == 0


@pytest.mark.parametrize("dtype", [DataType.INT32, DataType.BOOL, DataType.INT64])
def test_plain_integers_are_refused(dtype):
    network, x = network_with((1, 3, 8, 8), dtype=dtype)
    with pytest.raises(NetworkError, match=f"found {dtype.name}"):
        network.add_convolution_nd(x, 4, (3, 3), kernel(4, 3, 3, 3))


def test_weights_in_both_places_are_refused():
    network, x, weights = network_with((1, 2, 5, 5), (4, 2, 3, 3))
    layer = network.add_convolution_nd(x, 4, (3, 3), kernel(4, 2, 3, 3))
    layer.set_input(1, weights)
    with pytest.raises(NetworkError, match="both as a parameter and as input 1"):
        _ = layer.get_output(0).shape


@pytest.mark.parametrize("extent", [1, 2, 5, 6])
def test_an_output_of_less_than_nothing_is_not_taken_for_a_dynamic_one(extent):
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1, 2, extent, extent))
    layer = network.add_convolution_nd(x, 3, (7, 7), np.zeros((3, 2, 7, 7), np.float32))
    with pytest.raises(NetworkError, match=rf"larger than the padded input.*kernel \(7, 7\).*{extent}, {extent}\)"):
        _ = layer.get_output(0).shape


def test_of_an_empty_input_nothing_is_left():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1, 2, 0, 9))
    layer = network.add_convolution_nd(x, 3, (7, 7), np.zeros((3, 2, 7, 7), np.float32))
    assert layer.get_output(0).shape == (1, 3, 0, 3)


@pytest.mark.parametrize("none", [Weights(), np.zeros(0, np.float32)])
@pytest.mark.parametrize("method", ["add_convolution_nd", "add_deconvolution_nd"])
def test_empty_weights_are_none_so_that_input_1_can_be_the_kernel(method, none):
    network, x = network_with((1, 4, 8, 8))
    layer = getattr(network, method)(x, 4, (3, 3), none, none)
    layer.set_input(1, network.add_constant((4, 4, 3, 3), kernel(4, 4, 3, 3)).get_output(0))
    assert (layer.kernel, layer.bias) == (None, None)
    assert layer.get_output(0).shape[:2] == (1, 4)


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


def test_dynamic_extents_stay_dynamic_for_deconvolution():
    assert deconvolution((-1, 4, 5, -1)).shape == (-1, 6, 7, -1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kernel": np.zeros((6, 4, 3, 3))}, r"found \(6, 4, 3, 3\); allowed: \(4, 6, 3, 3\)"),
        ({"bias": np.zeros(4)}, r"The bias has the wrong shape.*found \(4,\); allowed: \(6,\)"),
        ({"num_groups": 4}, "4 in, 6 out, 4 groups"),
        ({"pre_padding": (4, 0), "post_padding": (3, 0)}, r"removes the whole output.*\(0, 7\)"),
        ({"stride_nd": (0, 1)}, "at least 1"),
    ],
)
def test_what_does_not_fit_is_refused_with_both_values_for_deconvolution(change, message):
    with pytest.raises(NetworkError, match=message):
        _ = deconvolution(**change).shape


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
