"""Elementwise operations, activations, scales, casts, concatenation, softmax and resize against the references."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.targets.cpu.group_runner import LAYOUTS, assert_like_reference, chosen_kernel, random_feeds, run_group

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType, ScaleMode
from dryfit.network.layers.elementwise import ElementWiseOperation, UnaryOperation
from dryfit.network.layers.movement import Concatenation
from dryfit.network.layers.resize import (
    InterpolationMode,
    Resize,
    ResizeCoordinateTransformation,
    ResizeRoundMode,
    ResizeSelector,
)
from dryfit.network.network import Network
from dryfit.target.group import LayerGroup

TYPES = (DataType.FLOAT, DataType.HALF, DataType.BF16)
OPERATIONS = ("SUM", "PROD", "MAX", "MIN", "SUB", "DIV", "POW")
FUNCTIONS = tuple(kind.name for kind in ActivationType if not kind.is_host_only)
UNARY = ("EXP", "LOG", "SQRT", "RECIP", "ABS", "NEG", "FLOOR", "CEIL", "ROUND", "ERF", "SIGN")
layouts_of_three = st.tuples(*[st.sampled_from(LAYOUTS)] * 3)


@settings(max_examples=120)
@given(
    dtype=st.sampled_from(TYPES),
    op=st.sampled_from(OPERATIONS),
    axes=st.lists(st.tuples(st.integers(1, 9), st.sampled_from(["both", "first", "second"])), max_size=6),
    with_activation=st.booleans(),
    layouts=layouts_of_three,
)
def test_every_broadcast_is_computed_as_the_reference_does(dtype, op, axes, with_activation, layouts):
    network = Network()
    x = network.add_input("x", dtype, [1 if which == "second" else extent for extent, which in axes])
    y = network.add_input("y", dtype, [1 if which == "first" else extent for extent, which in axes])
    layers = [network.add_elementwise(x, y, ElementWiseOperation[op])]
    if with_activation:
        layers.append(network.add_activation(layers[0].get_output(0), ActivationType.RELU))
    feeds = random_feeds(network, np.random.default_rng(0), {"x": layouts[0], "y": layouts[1]})
    assert_like_reference(network, layers, feeds, kernel_name="cpu.pointwise", layout=layouts[2], tolerance=1e-6)


@pytest.mark.parametrize("op", OPERATIONS)
def test_special_values_are_combined_as_numpy_does(op):
    network = Network()
    x, y = (network.add_input(name, DataType.FLOAT, (25,)) for name in "xy")
    layer = network.add_elementwise(x, y, ElementWiseOperation[op])
    special = np.array([np.nan, np.inf, -np.inf, 0.0, 1.5], np.float32)
    feeds = {"x": np.repeat(special, 5), "y": np.tile(special, 5)}
    assert_like_reference(network, [layer], feeds, kernel_name="cpu.pointwise", layout="linear")


@pytest.mark.parametrize("dtype", TYPES)
def test_a_square_is_a_product(dtype):
    network = Network()
    x = network.add_input("x", dtype, (3, 50))
    two = network.add_constant((1, 1), np.full((1, 1), 2, dtype.numpy)).get_output(0)
    total = network.add_elementwise(x, x, ElementWiseOperation.SUM)
    square = network.add_elementwise(total.get_output(0), two, ElementWiseOperation.POW)
    for layers in ([square], [square, network.add_unary(square.get_output(0), UnaryOperation.SQRT)]):
        feeds = random_feeds(network, np.random.default_rng(0), "linear")
        feeds[total.get_output(0).name] = random_feeds(network, np.random.default_rng(1), "linear")["x"]
        assert_like_reference(network, layers, feeds, kernel_name="cpu.pointwise", layout="linear", tolerance=0)
    special = np.array([np.nan, np.inf, -np.inf, -0.0, 6e4, 1e-7], dtype.numpy)
    feeds[total.get_output(0).name] = np.resize(special, (3, 50))
    assert_like_reference(network, [square], feeds, kernel_name="cpu.pointwise", layout="linear", tolerance=0)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", FUNCTIONS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_activation_is_computed_as_the_reference_does(dtype, kind, layout):
    network = Network()
    x = network.add_input("x", dtype, (1, 3, 37, 29))
    layer = network.add_activation(x, ActivationType[kind])
    given = {"CLIP": (-1.0, 2.5), "HARD_SIGMOID": (0.2, 0.5), "SELU": (1.67, 1.05), "SOFTPLUS": (0.7, 1.5)}
    layer.alpha, layer.beta = given.get(kind, (0.1, 0.3))
    feeds = random_feeds(network, np.random.default_rng(0), layout)
    feeds["x"][...] *= 30
    feeds["x"][0, 0, 0, :7] = [np.nan, np.inf, -np.inf, 0.0, 1e-4, -1e-4, 0.6]
    assert_like_reference(network, [layer], feeds, kernel_name="cpu.pointwise", layout=layout, tolerance=1e-6)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op", UNARY)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_unary_function_is_computed_as_the_reference_does(dtype, op, layout):
    network = Network()
    x = network.add_input("x", dtype, (1, 3, 37, 29))
    layer = network.add_unary(x, UnaryOperation[op])
    feeds = random_feeds(network, np.random.default_rng(0), layout)
    feeds["x"][...] *= 10
    feeds["x"][0, 0, 0, :10] = [np.nan, np.inf, -np.inf, 0.0, 1e-4, -1e-4, 0.6, 2.5, 3.5, -0.5]
    assert_like_reference(network, [layer], feeds, kernel_name="cpu.pointwise", layout=layout, tolerance=1e-6)


@settings(max_examples=80)
@given(
    dtype=st.sampled_from(TYPES),
    inner=st.sampled_from(["SIGMOID", "TANH", "ELU", "GELU_ERF"]),
    op=st.sampled_from(["SUM", "PROD", "SUB", "MAX", "scale", "slopes"]),
    outer=st.sampled_from(["", "RELU", "SQRT", "ABS"]),
    is_second=st.booleans(),
    with_itself=st.booleans(),
    layouts=layouts_of_three,
)
def test_a_function_an_operation_and_a_function_are_one_pass(dtype, inner, op, outer, is_second, with_itself, layouts):
    network = Network()
    x, y = network.add_input("x", dtype, (2, 5, 3, 7)), network.add_input("y", dtype, (2, 5, 3, 7))
    layers = [network.add_activation(x, ActivationType[inner])]
    value = layers[0].get_output(0)
    if op == "scale":
        layers.append(network.add_scale(value, ScaleMode.UNIFORM, np.float32([0.5]), np.float32([2.0])))
    elif op == "slopes":
        layers.append(network.add_parametric_relu(value, y))
    else:
        pair = [value, x if with_itself else y]
        swapped = is_second and op != "SUB"
        layers.append(network.add_elementwise(*pair[:: -1 if swapped else 1], ElementWiseOperation[op]))
    if outer in UNARY:
        layers.append(network.add_unary(layers[-1].get_output(0), UnaryOperation[outer]))
    elif outer:
        layers.append(network.add_activation(layers[-1].get_output(0), ActivationType[outer]))
    layers[0].alpha = 0.5
    feeds = random_feeds(network, np.random.default_rng(0), {"x": layouts[0], "y": layouts[1]})
    if outer == "SQRT":
        # Next to zero a root makes a small difference large.
        feeds["x"][...], feeds["y"][...] = np.abs(feeds["x"]) + 2, np.abs(feeds["y"]) / 8
    used = {tensor.name for layer in layers for tensor in layer.inputs}
    feeds = {name: array for name, array in feeds.items() if name in used}
    assert_like_reference(network, layers, feeds, kernel_name="cpu.pointwise", layout=layouts[2], tolerance=1e-6)


def test_an_operand_of_an_operation_that_does_not_commute_keeps_its_place():
    network = Network()
    x, y = network.add_input("x", DataType.FLOAT, (4,)), network.add_input("y", DataType.FLOAT, (4,))
    root = network.add_unary(x, UnaryOperation.SQRT)
    value = root.get_output(0)
    first = network.add_elementwise(value, y, ElementWiseOperation.DIV)
    second = network.add_elementwise(y, value, ElementWiseOperation.DIV)
    square = network.add_elementwise(value, value, ElementWiseOperation.PROD)
    kernel, group = chosen_kernel(network, [root]), LayerGroup([root])
    assert kernel.fuses(group, first)
    assert not kernel.fuses(group, second)
    assert not kernel.fuses(group, square)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("slopes", [(2, 5, 3, 7), (1, 5, 1, 1), (1, 1, 1, 1)])
def test_a_parametric_relu_is_computed_as_the_reference_does(dtype, slopes):
    network = Network()
    x, y = network.add_input("x", dtype, (2, 5, 3, 7)), network.add_input("y", dtype, slopes)
    layer = network.add_parametric_relu(x, y)
    feeds = random_feeds(network, np.random.default_rng(0))
    feeds["x"][0, 0, 0, :4] = [np.nan, np.inf, -np.inf, -0.0]
    assert_like_reference(network, [layer], feeds, kernel_name="cpu.pointwise", tolerance=1e-6)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("mode", list(ScaleMode))
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_scale_layer_is_computed_as_the_reference_does(dtype, mode, layout):
    network = Network()
    generator = np.random.default_rng(0)
    x = network.add_input("x", dtype, (2, 5, 3, 7))
    count = {ScaleMode.UNIFORM: 1, ScaleMode.CHANNEL: 5, ScaleMode.ELEMENTWISE: 105}[mode]
    shift, scale = generator.standard_normal((2, count)).astype(np.float32)
    layer = network.add_scale(x, mode, shift, scale)
    relu = network.add_activation(layer.get_output(0), ActivationType.RELU)
    feeds = random_feeds(network, generator, layout)
    assert_like_reference(network, [layer, relu], feeds, kernel_name="cpu.pointwise", tolerance=1e-6)


@pytest.mark.parametrize("source", TYPES)
@pytest.mark.parametrize("destination", TYPES)
@pytest.mark.parametrize("layouts", [(a, b) for a in LAYOUTS for b in LAYOUTS])
def test_a_cast_copies_between_layouts(source, destination, layouts):
    network = Network()
    x = network.add_input("x", source, (2, 35, 4, 5))
    layer = network.add_cast(x, destination)
    feeds = random_feeds(network, np.random.default_rng(0), layouts[0])
    name = "cpu.pointwise"
    assert_like_reference(network, [layer], feeds, kernel_name=name, layout=layouts[1], tolerance=0)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_inputs_of_every_layout_are_concatenated(dtype, axis):
    network = Network()
    shapes = [[2, 3, 4, 5] for _ in LAYOUTS]
    for index, shape in enumerate(shapes):
        shape[axis] += 7 * index
    inputs = [network.add_input(layout, dtype, shape) for layout, shape in zip(LAYOUTS, shapes, strict=True)]
    layer = network.add_layer(Concatenation(axis=axis), inputs)
    feeds = random_feeds(network, np.random.default_rng(0), {layout: layout for layout in LAYOUTS})
    assert_like_reference(network, [layer], feeds, kernel_name="cpu.concatenation", tolerance=0)


@settings(max_examples=60)
@given(
    dtype=st.sampled_from(TYPES),
    shape=st.lists(st.integers(1, 20), min_size=1, max_size=5),
    data=st.data(),
    layouts=st.tuples(st.sampled_from(LAYOUTS), st.sampled_from(LAYOUTS)),
)
def test_softmax_over_every_axis_is_computed_as_the_reference_does(dtype, shape, data, layouts):
    network = Network()
    x = network.add_input("x", dtype, shape)
    layer = network.add_softmax(x)
    layer.axes = 1 << data.draw(st.integers(0, len(shape) - 1))
    feeds = random_feeds(network, np.random.default_rng(0), layouts[0])
    feeds["x"][...] *= 5
    assert_like_reference(network, [layer], feeds, kernel_name="cpu.softmax", layout=layouts[1], tolerance=1e-6)


@settings(max_examples=120)
@given(
    dtype=st.sampled_from(TYPES),
    mode=st.sampled_from([InterpolationMode.NEAREST, InterpolationMode.LINEAR]),
    transformation=st.sampled_from(
        [t for t in ResizeCoordinateTransformation if t is not ResizeCoordinateTransformation.TF_CROP_AND_RESIZE]
    ),
    rounding=st.sampled_from(ResizeRoundMode),
    selector=st.sampled_from(ResizeSelector),
    extents=st.tuples(*[st.integers(1, 12)] * 4),
    by_scales=st.booleans(),
    layouts=st.tuples(st.sampled_from(LAYOUTS), st.sampled_from(LAYOUTS)),
)
def test_every_resize_is_sampled_as_the_reference_does(
    dtype, mode, transformation, rounding, selector, extents, by_scales, layouts
):
    network = Network()
    H, W, rows, columns = extents
    x = network.add_input("x", dtype, (2, 19, H, W))
    layer = Resize(
        resize_mode=mode,
        coordinate_transformation=transformation,
        nearest_rounding=rounding,
        selector_for_single_pixel=selector,
        **({"scales": (1, 1, rows / 4 + 1, columns / 4 + 1)} if by_scales else {"shape": (2, 19, rows, columns)}),
    )
    network.add_layer(layer, [x])
    feeds = random_feeds(network, np.random.default_rng(0), layouts[0])
    assert_like_reference(network, [layer], feeds, kernel_name="cpu.resize", layout=layouts[1], tolerance=1e-5)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("mode", [InterpolationMode.NEAREST, InterpolationMode.LINEAR])
@pytest.mark.parametrize("channels", [1, 21])
@pytest.mark.parametrize("extents", [(5, 7, 40, 56), (9, 33, 4, 10), (1, 1, 3, 17)])
def test_planes_are_resized_to_the_bits_of_channels_that_lie_together(dtype, mode, channels, extents):
    network = Network()
    H, W, rows, columns = extents
    x = network.add_input("x", dtype, (2, channels, H, W))
    layer = network.add_resize(x)
    layer.shape, layer.resize_mode = (2, channels, rows, columns), mode
    found = []
    for source in LAYOUTS:
        feeds = random_feeds(network, np.random.default_rng(0), source)
        feeds["x"][0, 0, 0, 0] = np.inf
        found += [run_group(network, [layer], feeds, layout=layout, threads=2) for layout in LAYOUTS]
    for one in found[1:]:
        np.testing.assert_array_equal(one.astype(np.float32), found[0].astype(np.float32))


def test_what_the_kernels_lack_is_left_to_the_reference():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1, 2, 4, 4))
    i = network.add_input("i", DataType.INT32, (1, 2, 4, 4))
    sine = network.add_unary(x, UnaryOperation.SIN)
    integers = network.add_elementwise(i, i, ElementWiseOperation.MOD)
    scale = network.add_scale(x, ScaleMode.UNIFORM, power=np.array([2.0], np.float32))
    cubic = network.add_resize(x)
    cubic.shape, cubic.resize_mode = (1, 2, 8, 8), InterpolationMode.CUBIC
    for layer in (sine, integers, scale, cubic):
        assert chosen_kernel(network, [layer]).name == "cpu.reference"
