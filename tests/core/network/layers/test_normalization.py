"""Shapes, types and checks of normalizations."""

from __future__ import annotations

import pytest

from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layers.normalization import Normalization

from .building import network_with


def test_parameters_have_tensorrts_names_and_defaults():
    network, x, scale, bias = network_with((1, 4, 8, 8), (1, 4, 1, 1), (1, 4, 1, 1))
    layer = network.add_normalization(x, scale, bias, 0b1100)
    assert (layer.epsilon, layer.num_groups, layer.compute_precision, layer.axes) == (1e-5, 1, DataType.FLOAT, 0b1100)
    assert layer.get_output(0).shape == (1, 4, 8, 8)


@pytest.mark.parametrize("channels", [4, 2, 1])
def test_with_groups_a_scale_has_one_value_a_channel_or_a_group(channels):
    network, x, scale = network_with((-1, 4, 8, 8), (1, channels, 1, 1))
    layer = network.add_normalization(x, scale, None, 0b1100)
    layer.num_groups = 2
    assert layer.get_output(0).shape == (-1, 4, 8, 8)


@pytest.mark.parametrize(
    ("scale_shape", "axes", "groups", "message"),
    [
        ((1, 4, 1, 1), 0b1100, 3, "4 channels, 3 groups"),
        ((1, 4, 1, 1), 0b1110, 2, r"found \(1, 2, 3\); allowed: axes from 2 on"),
        ((1, 4, 1, 1), 0b1100, 0, "number of groups must be at least 1.*found 0"),
        ((1, 4, 1, 1), 0b10000, 1, "found 0b10000; allowed: bits 0 to 3"),
        ((2, 4, 1, 1), 0b1100, 1, r"scale must broadcast.*found \(2, 4, 1, 1\) with 1 groups; allowed: \(1, 4, 8, 8\)"),
        ((4,), 0b1100, 1, r"scale must broadcast.*found \(4,\)"),
    ],
)
def test_what_does_not_fit_is_refused_with_both_values(scale_shape, axes, groups, message):
    network, x, scale = network_with((1, 4, 8, 8), scale_shape)
    layer = Normalization(axes=axes, num_groups=groups)
    with pytest.raises(NetworkError, match=message):
        network.add_layer(layer, [x, scale]).get_output(0).shape  # noqa: B018  asking is the point


def test_integers_are_refused():
    network, x = network_with((1, 4), dtype=DataType.INT32)
    with pytest.raises(NetworkError, match="INT32 computed in FP32"):
        network.add_normalization(x, None, None, 2)


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


def test_the_second_version_has_one_value_a_channel_with_groups():
    network, x = network_with((1, 8, 4, 4))
    scale, bias = (network.add_input(name, DataType.FLOAT, (1, 8, 1, 1)) for name in ("scale", "bias"))
    layer = network.add_normalization_v2(x, scale, bias, 0b1100)
    layer.num_groups = 2
    assert isinstance(layer, Normalization)
    assert layer.get_output(0).shape == (1, 8, 4, 4)
