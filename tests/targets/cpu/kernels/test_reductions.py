"""Reductions and normalizations against the references."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.targets.cpu.group_runner import LAYOUTS, assert_like_reference, random_feeds, run_group

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.elementwise import UnaryOperation
from dryfit.network.layers.reduction import ReduceOperation
from dryfit.network.network import Network

TYPES = (DataType.FLOAT, DataType.HALF, DataType.BF16)
layouts_of_two = st.tuples(*[st.sampled_from(LAYOUTS)] * 2)


@settings(max_examples=150)
@given(
    dtype=st.sampled_from(TYPES),
    op=st.sampled_from(ReduceOperation),
    axes=st.lists(st.tuples(st.integers(1, 9) | st.integers(30, 40), st.booleans()), min_size=1, max_size=6),
    keep_dims=st.booleans(),
    layouts=layouts_of_two,
)
def test_a_reduction_over_any_axes_is_computed_as_the_reference_does(dtype, op, axes, keep_dims, layouts):
    shape = [extent for extent, _ in axes]
    if np.prod(shape) > 1_000_000:
        shape = [min(extent, 9) for extent in shape]
    mask = sum(1 << axis for axis, (_, is_reduced) in enumerate(axes) if is_reduced) or 1
    network = Network()
    x = network.add_input("x", dtype, shape)
    layer = network.add_reduce(x, op, mask, keep_dims)
    feeds = random_feeds(network, np.random.default_rng(0), layouts[0])
    counted = np.prod([extent for axis, extent in enumerate(shape) if mask >> axis & 1])
    if op is ReduceOperation.PROD:
        # Products of about 1, however many.
        feeds["x"][...] = np.exp(feeds["x"].astype(np.float32) / np.sqrt(counted))
    elif op is ReduceOperation.SUM:
        feeds["x"][...] = feeds["x"].astype(np.float32) / np.sqrt(counted)
    kernel = "cpu.global_pooling" if _is_pooling(network, layer) else "cpu.reduction"
    assert_like_reference(network, [layer], feeds, kernel_name=kernel, layout=layouts[1])


def _is_pooling(network, layer):
    is_image = len(network.inputs[0].shape) == 4 and layer.axes == 0b1100
    return is_image and layer.op in (ReduceOperation.AVG, ReduceOperation.MAX)


@pytest.mark.parametrize("op", [ReduceOperation.MAX, ReduceOperation.MIN, ReduceOperation.SUM, ReduceOperation.PROD])
@pytest.mark.parametrize("axis", [0, 1])
def test_special_values_are_reduced_as_numpy_does(op, axis):
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (37, 37))
    layer = network.add_reduce(x, op, 1 << axis, False)
    feeds = random_feeds(network, np.random.default_rng(0), "linear")
    feeds["x"][np.arange(12), np.arange(12)] = np.resize(np.array([np.nan, np.inf, -np.inf], np.float32), 12)
    feeds["x"][20:24, 30] = [np.inf, -np.inf, np.inf, np.nan]
    assert_like_reference(network, [layer], feeds, kernel_name="cpu.reduction", layout="linear")


@pytest.mark.parametrize("axes", [0b01, 0b10, 0b11])
def test_a_long_sum_loses_little(axes):
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1000, 1003))
    layer = network.add_reduce(x, ReduceOperation.AVG, axes, False)
    feeds = random_feeds(network, np.random.default_rng(0), "linear")
    feeds["x"][...] += 100
    truth = feeds["x"].astype(np.float64).mean(axis=tuple(axis for axis in range(2) if axes >> axis & 1))
    actual = run_group(network, [layer], feeds, layout="linear")
    np.testing.assert_allclose(actual, truth, rtol=1e-6)


@pytest.mark.parametrize("dtype", TYPES)
def test_a_root_follows_a_mean_in_one_group(dtype):
    network = Network()
    x = network.add_input("x", dtype, (1, 49, 64))
    mean = network.add_reduce(x, ReduceOperation.AVG, 0b100, True)
    root = network.add_unary(mean.get_output(0), UnaryOperation.SQRT)
    feeds = random_feeds(network, np.random.default_rng(0))
    feeds["x"][...] = np.abs(feeds["x"])
    assert_like_reference(network, [mean, root], feeds, kernel_name="cpu.reduction")


@settings(max_examples=120)
@given(
    dtype=st.sampled_from(TYPES),
    axes=st.lists(st.tuples(st.integers(1, 9) | st.integers(30, 40), st.booleans()), min_size=2, max_size=5),
    factors=st.tuples(*[st.sampled_from(["none", "kept", "reduced", "all", "one"])] * 2),
    with_activation=st.booleans(),
    layouts=st.tuples(*[st.sampled_from(LAYOUTS)] * 3),
)
def test_a_normalization_over_any_axes_is_computed_as_the_reference_does(
    dtype, axes, factors, with_activation, layouts
):
    shape = [extent for extent, _ in axes]
    if np.prod(shape) > 300_000:
        shape = [min(extent, 9) for extent in shape]
    mask = sum(1 << axis for axis, (_, is_reduced) in enumerate(axes) if is_reduced) or 1
    network = Network()
    x = network.add_input("x", dtype, shape)

    def factor(name, which):
        if which == "none":
            return None
        is_wanted = {"kept": lambda axis: not mask >> axis & 1, "reduced": lambda axis: mask >> axis & 1}
        wanted = is_wanted.get(which, lambda axis: which == "all")
        return network.add_input(name, dtype, [e if wanted(axis) else 1 for axis, e in enumerate(shape)])

    layers = [network.add_normalization(x, factor("scale", factors[0]), factor("bias", factors[1]), mask)]
    layers[0].epsilon = 0.01
    if with_activation:
        layers.append(network.add_activation(layers[0].get_output(0), ActivationType.GELU_ERF))
    feeds = random_feeds(network, np.random.default_rng(0), {"x": layouts[0], "scale": layouts[1], "bias": layouts[1]})
    feeds["x"][...] += 3
    assert_like_reference(network, layers, feeds, kernel_name="cpu.normalization", layout=layouts[2], tolerance=5e-5)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("groups", "is_per_group"), [(1, False), (3, False), (3, True), (12, False)])
def test_groups_of_channels_are_normalized_together(dtype, layout, groups, is_per_group):
    network = Network()
    x = network.add_input("x", dtype, (2, 12, 5, 7))
    factors = [network.add_input(name, dtype, (1, groups if is_per_group else 12, 1, 1)) for name in ("scale", "bias")]
    layer = network.add_normalization(x, *factors, 0b1100)
    layer.num_groups = groups
    feeds = random_feeds(network, np.random.default_rng(0), layout)
    assert_like_reference(network, [layer], feeds, kernel_name="cpu.normalization", layout=layout)


@settings(max_examples=100)
@given(
    dtype=st.sampled_from(TYPES),
    shape=st.lists(st.integers(1, 7), max_size=2).flatmap(
        lambda spatial: st.tuples(st.integers(1, 3), st.integers(1, 40), *map(st.just, spatial))
    ),
    window=st.integers(1, 9) | st.just(90),
    beta=st.sampled_from([0.75, 0.5, 1.0, 1.3]),
    layouts=layouts_of_two,
)
def test_every_local_normalization_is_computed_as_the_reference_does(dtype, shape, window, beta, layouts):
    network = Network()
    x = network.add_input("x", dtype, shape)
    layer = network.add_lrn(x, window, 2.0, beta, 1.5)
    feeds = random_feeds(network, np.random.default_rng(0), layouts[0])
    assert_like_reference(network, [layer], feeds, kernel_name="cpu.lrn", layout=layouts[1], tolerance=2e-6)


def test_a_local_normalization_keeps_not_a_number_among_its_neighbours():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1, 40, 2, 3))
    layer = network.add_lrn(x, 5, 1e-4, 0.75, 1.0)
    feeds = random_feeds(network, np.random.default_rng(0))
    feeds["x"][0, 20, 1, 1], feeds["x"][0, 3, 0, 0] = np.nan, np.inf
    assert_like_reference(network, [layer], feeds, kernel_name="cpu.lrn", tolerance=2e-6)
