"""Scales, and sums and products with constants, fold into one another and into the weights before them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.targets.cpu.group_runner import LAYOUTS, assert_like_reference, chosen_kernel, random_feeds
from tests.targets.cpu.kernels.test_convolution import ACTIVATIONS, TYPES, activation, convolution

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ScaleMode
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.matrix import MatrixOperation
from dryfit.network.network import Network
from dryfit.target.group import LayerGroup

SUM, SUB, PROD, DIV, MAX = (getattr(ElementWiseOperation, name) for name in ("SUM", "SUB", "PROD", "DIV", "MAX"))
KINDS = ("scale", "uniform scale", "factor", "term", "term first", "difference", "number")


def add(network, x, kind, generator, axis=1):
    """One affine layer on `x`, with coefficients along an axis."""
    extent = x.shape[axis]
    if kind in ("scale", "uniform scale"):
        mode = ScaleMode.CHANNEL if kind == "scale" else ScaleMode.UNIFORM
        shift, scale = generator.standard_normal((2, extent if kind == "scale" else 1)).astype(np.float32)
        return network.add_scale_nd(x, mode, shift, scale, channel_axis=axis)
    shape = tuple(extent if at == axis and kind != "number" else 1 for at in range(len(x.shape)))
    constant = network.add_constant(shape, generator.standard_normal(shape).astype(x.dtype.numpy)).get_output(0)
    operation = {"difference": SUB, "factor": PROD, "number": PROD}.get(kind, SUM)
    return network.add_elementwise(*((constant, x) if kind == "term first" else (x, constant)), operation)


@settings(max_examples=80)
@given(
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=4),
    dtype=st.sampled_from(TYPES),
    axis=st.integers(0, 3),
    kind=st.sampled_from([None, *ACTIVATIONS]),
    layouts=st.tuples(st.sampled_from(LAYOUTS), st.sampled_from(LAYOUTS)),
)
def test_a_chain_runs_in_one_pass_and_is_computed_as_the_references_do(kinds, dtype, axis, kind, layouts):
    network, generator = Network(), np.random.default_rng(0)
    value, layers = network.add_input("x", dtype, (2, 5, 3, 18)), []
    for one in kinds:
        layers.append(add(network, value, one, generator, axis))
        value = layers[-1].get_output(0)
    if kind is not None:
        layers.append(activation(network, value, kind))
    # A lone scale layer in FP16 has its factor rounded by the reference; in a group it is kept in FP32.
    assume(dtype is DataType.FLOAT or len(layers) > 1)
    feeds = random_feeds(network, generator, layouts[0])
    assert_like_reference(network, layers, feeds, kernel_name="cpu.pointwise", layout=layouts[1])


@settings(max_examples=40)
@given(
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=4),
    groups=st.sampled_from([1, 2, 32]),
    with_residual=st.booleans(),
)
def test_a_convolution_takes_a_chain_into_its_weights(kinds, groups, with_residual):
    network, generator = Network(), np.random.default_rng(0)
    x = network.add_input("x", DataType.FLOAT, (1, 32, 9, 8))
    layers = [convolution(network, x, 32, (3, 3), groups=groups, pre_padding=(1, 1), post_padding=(1, 1))]
    for one in kinds:
        layers.append(add(network, layers[-1].get_output(0), one, generator))
    if with_residual:
        value = layers[-1].get_output(0)
        residual = network.add_input("residual", DataType.FLOAT, value.shape)
        layers.append(network.add_elementwise(value, residual, SUM))
    layers.append(activation(network, layers[-1].get_output(0), ACTIVATIONS[0]))
    name = "cpu.depthwise_convolution" if groups == 32 else "cpu.convolution"
    feeds = random_feeds(network, generator)
    assert_like_reference(network, layers, feeds, kernel_name=name, tolerance=1e-4)


def test_a_product_of_two_computed_matrices_has_no_weights_to_fold_into_and_adds_its_bias_at_the_end():
    network, generator = Network(), np.random.default_rng(0)
    x, y = (network.add_input(name, DataType.FLOAT, shape) for name, shape in (("x", (1, 9, 24)), ("y", (1, 24, 40))))
    layer = network.add_matrix_multiply(x, MatrixOperation.NONE, y, MatrixOperation.NONE)
    bias = add(network, layer.get_output(0), "term", generator, axis=2)
    factor = add(network, bias.get_output(0), "factor", generator, axis=2)
    feeds = random_feeds(network, generator, "linear")
    assert_like_reference(network, [layer, bias], feeds, kernel_name="cpu.matrix_multiply", layout="linear")
    assert not chosen_kernel(network, [layer]).fuses(LayerGroup([layer, bias]), factor)


def test_chains_along_different_axes_do_not_fold():
    network, generator = Network(), np.random.default_rng(0)
    first = add(network, network.add_input("x", DataType.FLOAT, (1, 4, 4, 4)), "scale", generator, 1)
    second = add(network, first.get_output(0), "factor", generator, 2)
    assert not chosen_kernel(network, [first]).fuses(LayerGroup([first]), second)


@pytest.mark.parametrize("operation", [DIV, MAX])
def test_other_operations_with_constants_do_not_fold(operation):
    network, generator = Network(), np.random.default_rng(0)
    first = add(network, network.add_input("x", DataType.FLOAT, (1, 4, 4, 4)), "scale", generator)
    constant = network.add_constant((1, 4, 1, 1), np.ones((1, 4, 1, 1), np.float32)).get_output(0)
    second = network.add_elementwise(first.get_output(0), constant, operation)
    assert not chosen_kernel(network, [first]).fuses(LayerGroup([first]), second)


def test_a_constant_that_is_larger_than_what_it_is_added_to_does_not_fold():
    network, generator = Network(), np.random.default_rng(0)
    first = add(network, network.add_input("x", DataType.FLOAT, (1, 1, 4, 4)), "uniform scale", generator)
    constant = network.add_constant((1, 4, 1, 1), np.ones((1, 4, 1, 1), np.float32)).get_output(0)
    second = network.add_elementwise(first.get_output(0), constant, SUM)
    assert not chosen_kernel(network, [first]).fuses(LayerGroup([first]), second)


def test_a_difference_from_a_constant_does_not_fold():
    network, generator = Network(), np.random.default_rng(0)
    first = add(network, network.add_input("x", DataType.FLOAT, (1, 4, 4, 4)), "scale", generator)
    constant = network.add_constant((1, 4, 1, 1), np.ones((1, 4, 1, 1), np.float32)).get_output(0)
    second = network.add_elementwise(constant, first.get_output(0), SUB)
    assert not chosen_kernel(network, [first]).fuses(LayerGroup([first]), second)
