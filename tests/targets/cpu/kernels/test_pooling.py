"""Pooling and global pooling against the references."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.targets.cpu.group_runner import LAYOUTS, assert_like_reference, chosen_kernel, random_feeds

from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.reduction import ReduceOperation
from dryfit.network.layers.window_layer import PaddingMode, Pooling, PoolingType
from dryfit.network.network import Network

TYPES = (DataType.FLOAT, DataType.HALF, DataType.BF16)


@settings(max_examples=120)
@given(
    dtype=st.sampled_from(TYPES),
    kind=st.sampled_from([PoolingType.MAX, PoolingType.AVERAGE]),
    shape=st.tuples(st.integers(1, 2), st.sampled_from([1, 3, 16, 35]), st.integers(2, 12), st.integers(2, 12)),
    window=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    dilation=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    padding=st.tuples(*[st.integers(0, 1)] * 4),
    mode=st.sampled_from(PaddingMode),
    excludes=st.booleans(),
    layouts=st.tuples(st.sampled_from(LAYOUTS), st.sampled_from(LAYOUTS)),
)
def test_every_window_is_pooled_as_the_reference_does(
    dtype, kind, shape, window, stride, dilation, padding, mode, excludes, layouts
):
    network = Network()
    x = network.add_input("x", dtype, shape)
    layer = Pooling(
        pooling_type=kind,
        window_size_nd=window,
        stride_nd=stride,
        dilation_nd=dilation,
        pre_padding=padding[:2],
        post_padding=padding[2:],
        padding_mode=mode,
        average_count_excludes_padding=excludes,
    )
    try:
        assert network.add_layer(layer, [x]).get_output(0).shape
    except NetworkError:
        assume(False)
    relu = network.add_activation(layer.get_output(0), ActivationType.RELU)
    feeds = random_feeds(network, np.random.default_rng(0), layouts[0])
    assert_like_reference(network, [layer, relu], feeds, kernel_name="cpu.pooling", layout=layouts[1])


@settings(max_examples=60)
@given(
    dtype=st.sampled_from(TYPES),
    kind=st.sampled_from([PoolingType.MAX, PoolingType.AVERAGE]),
    shape=st.tuples(st.integers(1, 2), st.sampled_from([1, 3, 16, 70]), *[st.integers(2, 7)] * 3),
    window=st.tuples(*[st.integers(1, 3)] * 3),
    stride=st.tuples(*[st.integers(1, 3)] * 3),
    dilation=st.tuples(*[st.integers(1, 2)] * 3),
    padding=st.tuples(*[st.integers(0, 1)] * 6),
    mode=st.sampled_from(PaddingMode),
    excludes=st.booleans(),
    layouts=st.tuples(st.sampled_from(LAYOUTS), st.sampled_from(LAYOUTS)),
)
def test_every_window_of_volumes_is_pooled_as_the_reference_does(
    dtype, kind, shape, window, stride, dilation, padding, mode, excludes, layouts
):
    network = Network()
    x = network.add_input("x", dtype, shape)
    layer = Pooling(
        pooling_type=kind,
        window_size_nd=window,
        stride_nd=stride,
        dilation_nd=dilation,
        pre_padding=padding[:3],
        post_padding=padding[3:],
        padding_mode=mode,
        average_count_excludes_padding=excludes,
    )
    try:
        assert network.add_layer(layer, [x]).get_output(0).shape
    except NetworkError:
        assume(False)
    feeds = random_feeds(network, np.random.default_rng(0), layouts[0])
    assert_like_reference(network, [layer], feeds, kernel_name="cpu.pooling", layout=layouts[1])


def test_one_spatial_axis_is_pooled():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (2, 5, 17))
    layer = network.add_pooling_nd(x, PoolingType.AVERAGE, (3,))
    layer.stride_nd = (2,)
    feeds = random_feeds(network, np.random.default_rng(0), "linear")
    assert_like_reference(network, [layer], feeds, kernel_name="cpu.pooling", layout="linear")


@pytest.mark.parametrize("channels", [8, 16, 24, 32, 40])
@pytest.mark.parametrize("extent", [5, 14, 33])
@pytest.mark.parametrize(("window", "stride", "padding"), [(2, 2, 0), (3, 2, 1), (3, 1, 1)])
@pytest.mark.parametrize("counts_padding", [None, True, False])
def test_small_and_large_images_are_pooled_by_whole_vectors(channels, extent, window, stride, padding, counts_padding):
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1, channels, extent, extent + 2))
    layer = Pooling(
        pooling_type=PoolingType.MAX if counts_padding is None else PoolingType.AVERAGE,
        window_size_nd=(window, window),
        stride_nd=(stride, stride),
        pre_padding=(padding, padding),
        post_padding=(padding, padding),
        average_count_excludes_padding=counts_padding is False,
    )
    network.add_layer(layer, [x])
    feeds = random_feeds(network, np.random.default_rng(0))
    assert_like_reference(network, [layer], feeds, kernel_name="cpu.pooling")


def test_nan_wins_a_maximum():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1, 20, 6, 6))
    layer = network.add_pooling_nd(x, PoolingType.MAX, (2, 2))
    feeds = random_feeds(network, np.random.default_rng(0))
    feeds["x"][0, 3, 2, 2] = np.nan
    assert_like_reference(network, [layer], feeds, kernel_name="cpu.pooling")


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op", [ReduceOperation.AVG, ReduceOperation.MAX])
@pytest.mark.parametrize("keep_dims", [True, False])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_reduction_over_the_image_is_a_pooling(dtype, op, keep_dims, layout):
    network = Network()
    x = network.add_input("x", dtype, (2, 37, 5, 7))
    layer = network.add_reduce(x, op, 0b1100, keep_dims)
    feeds = random_feeds(network, np.random.default_rng(0), layout)
    assert_like_reference(network, [layer], feeds, kernel_name="cpu.global_pooling", layout=layout)


def test_what_the_kernel_lacks_is_left_to_the_reference():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1, 2, 4, 4))
    blend = network.add_pooling_nd(x, PoolingType.MAX_AVERAGE_BLEND, (2, 2))
    assert chosen_kernel(network, [blend]).name == "cpu.reference"
