"""Maxima, ReLU and joins of INT8 codes against the references, in any layout, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from tests.targets.cpu.group_runner import LAYOUTS, Guarded, assert_like_reference, chosen_kernel

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.reduction import ReduceOperation
from dryfit.network.layers.window_layer import PoolingType
from dryfit.network.network import Network

SHAPES = ((1, 3, 5, 7), (2, 64, 6, 6), (1, 35, 4, 9))


def codes(*shapes, layout="channels_last"):
    """A network with inputs of these shapes, and all codes among what feeds them."""
    network, generator, feeds = Network(), np.random.default_rng(0), {}
    for number, shape in enumerate(shapes):
        tensor = network.add_input(f"x{number}", DataType.INT8, shape)
        feeds[tensor.name] = Guarded.new(shape, np.int8, layout).array
        feeds[tensor.name][...] = generator.integers(-128, 128, shape)
    return network, feeds


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("padding", [0, 1])
def test_maxima_of_windows(shape, layout, padding):
    network, feeds = codes(shape, layout=layout)
    layer = network.add_pooling_nd(network.inputs[0], PoolingType.MAX, (3, 3))
    layer.padding_nd, layer.stride_nd = (padding, padding), (2, 2)
    assert_like_reference(network, [layer], feeds, kernel_name="cpu.pooling", layout=layout, tolerance=0)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("keeps", [True, False])
def test_maxima_of_images(shape, keeps):
    network, feeds = codes(shape)
    layer = network.add_reduce(network.inputs[0], ReduceOperation.MAX, 0b1100, keeps)
    assert_like_reference(network, [layer], feeds, kernel_name="cpu.global_pooling", tolerance=0)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [*SHAPES, (130,)])
def test_relu(shape, layout):
    network, feeds = codes(shape, layout=layout)
    layer = network.add_activation(network.inputs[0], ActivationType.RELU)
    assert_like_reference(network, [layer], feeds, kernel_name="cpu.code_activation", layout=layout, tolerance=0)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("axis", [1, 2])
def test_joins(axis, layout):
    shape = (1, 35, 4, 9)
    other = tuple(5 if index == axis else extent for index, extent in enumerate(shape))
    network, feeds = codes(shape, other, layout=layout)
    layer = network.add_concatenation(network.inputs)
    layer.axis = axis
    assert_like_reference(network, [layer], feeds, kernel_name="cpu.concatenation", layout=layout, tolerance=0)


def test_what_rounds_is_left_to_others():
    network, _ = codes((1, 4, 4, 4))
    average = network.add_pooling_nd(network.inputs[0], PoolingType.AVERAGE, (2, 2))
    leaky = network.add_activation(network.inputs[0], ActivationType.LEAKY_RELU)
    assert {chosen_kernel(network, [layer]).name for layer in (average, leaky)} == {"cpu.reference"}
