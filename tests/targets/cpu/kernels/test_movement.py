"""Layers that only move values, against their references."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.targets.cpu.group_runner import LAYOUTS, assert_like_reference, chosen_kernel, random_feeds, specs_of

from dryfit import Builder, BuilderConfig
from dryfit.network.data_types import DataType
from dryfit.network.layers.slice import SampleMode
from dryfit.network.network import Network
from dryfit.network.tensor import TensorSpec
from dryfit.reference.registry import evaluate
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Binding

TYPES = (DataType.FLOAT, DataType.HALF, DataType.INT8, DataType.INT32, DataType.BOOL)
EXTENTS = st.lists(st.sampled_from([1, 2, 3, 4, 6, 17]), min_size=1, max_size=5).map(tuple)
LAYOUT = st.sampled_from(LAYOUTS)


def assert_moved(network, layer, layouts):
    """The values of the reference, bit for bit, for they are only moved."""
    feeds = random_feeds(network, np.random.default_rng(0), layouts[0])
    assert_like_reference(network, [layer], feeds, kernel_name="cpu.movement", layout=layouts[1], tolerance=0)


def factors(draw, count):
    """Extents whose product is the count."""
    extents = []
    while count > 1:
        extents.append(draw(st.sampled_from([divisor for divisor in range(2, count + 1) if count % divisor == 0])))
        count //= extents[-1]
    return draw(st.permutations([*extents, *[1] * draw(st.integers(0, 1))])) or [1]


@st.composite
def shuffles(draw):
    """A network of one shuffle: any of its three steps may be there."""
    shape = draw(EXTENTS)
    network = Network()
    layer = network.add_shuffle(network.add_input("x", draw(st.sampled_from(TYPES)), shape))
    axes = tuple(range(len(shape)))
    if draw(st.booleans()):
        layer.first_transpose = draw(st.permutations(axes))
    if draw(st.booleans()):
        layer.reshape_dims = factors(draw, int(np.prod(shape)))
        axes = tuple(range(len(layer.reshape_dims)))
    if draw(st.booleans()):
        layer.second_transpose = draw(st.permutations(axes))
    return network, layer


@pytest.mark.parametrize("dtype", [DataType.FLOAT, DataType.HALF, DataType.BF16, DataType.INT8])
@pytest.mark.parametrize("shape", [(1, 32, 48), (2, 3, 37, 21), (2, 17, 3, 40), (16, 16)])
def test_a_transposition_moves_whole_blocks_and_their_rest(dtype, shape):
    network = Network()
    layer = network.add_shuffle(network.add_input("x", dtype, shape))
    for order in {(*range(len(shape) - 2), len(shape) - 1, len(shape) - 2), (0, *range(len(shape) - 1, 0, -1))}:
        layer.first_transpose = order
        for layouts in (("linear", "linear"), ("channels_last", "linear"), ("linear", "channels_last")):
            assert_moved(network, layer, layouts)


@settings(max_examples=150)
@given(shuffles(), st.tuples(LAYOUT, LAYOUT))
def test_every_shuffle_moves_values_as_the_reference_does(case, layouts):
    assert_moved(*case, layouts)


@settings(max_examples=100)
@given(st.data(), EXTENTS, st.sampled_from(TYPES), st.tuples(LAYOUT, LAYOUT))
def test_every_slice_inside_its_input_moves_values_as_the_reference_does(data, shape, dtype, layouts):
    start, count, stride = [], [], []
    for extent in shape:
        step = data.draw(st.integers(-3, 3))
        first = data.draw(st.integers(0, extent - 1))
        room = extent - 1 - first if step > 0 else first
        count.append(data.draw(st.integers(1, room // abs(step) + 1 if step else 5)))
        start.append(first)
        stride.append(step)
    network = Network()
    layer = network.add_slice(network.add_input("x", dtype, shape), start, count, stride)
    assert_moved(network, layer, layouts)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_axes_of_extent_1_come_and_go(dtype, layout):
    network = Network()
    x = network.add_input("x", dtype, (3, 1, 5, 1))
    assert_moved(network, network.add_squeeze(x, constant_axes(network, [1, 3])), (layout, layout))
    network = Network()
    x = network.add_input("x", dtype, (3, 5))
    assert_moved(network, network.add_unsqueeze(x, constant_axes(network, [0, 2])), (layout, layout))


def constant_axes(network, axes):
    return network.add_constant((len(axes),), np.array(axes, np.int64)).get_output(0)


def test_a_large_transpose_is_cut_into_chunks_without_a_seam():
    network = Network()
    layer = network.add_shuffle(network.add_input("x", DataType.FLOAT, (1, 67, 129, 5)))
    layer.first_transpose, layer.reshape_dims = (0, 2, 3, 1), (129, -1)
    assert_moved(network, layer, ("channels_last", "linear"))


@pytest.mark.parametrize("mode", [mode for mode in SampleMode if mode is not SampleMode.STRICT_BOUNDS])
def test_a_slice_that_may_leave_its_input_is_no_mere_movement(mode):
    network = Network()
    layer = network.add_slice(network.add_input("x", DataType.FLOAT, (4, 6)), (0, 0), (2, 2), (1, 1))
    layer.mode = mode
    assert chosen_kernel(network, [layer]).name == "cpu.picking"


@pytest.mark.parametrize("turned", [False, True])
def test_a_reshape_to_extents_of_the_moment_takes_those_of_its_output(turned):
    network = Network()
    layer = network.add_shuffle(network.add_input("x", DataType.FLOAT, (4, 6)))
    layer.set_input(1, network.add_input("extents", DataType.INT64, (3,)))
    layer.second_transpose = (2, 0, 1) if turned else ()
    kernel, x = chosen_kernel(network, [layer]), np.arange(24, dtype=np.float32).reshape(4, 6)
    feeds = {"x": x, "extents": np.array([2, 3, 4])}
    (expected,) = evaluate(layer, list(feeds.values()))
    output = np.empty(expected.shape, np.float32)
    specs = {**specs_of(network), layer.get_output(0).name: TensorSpec.of(output)}
    arrays = {**feeds, layer.get_output(0).name: output}
    kernel.bind(Binding(LayerGroup([layer]), specs, arrays, {}, np.empty(0, np.uint8))).run()
    assert kernel.name == "cpu.movement"
    np.testing.assert_array_equal(output, expected)


def test_unsigned_bytes_are_left_to_the_reference():
    network = Network()
    layer = network.add_shuffle(network.add_input("x", DataType.UINT8, (4, 6)))
    layer.first_transpose = (1, 0)
    assert chosen_kernel(network, [layer]).name == "cpu.reference"


def chain_of(network, x, *steps):
    """Shuffle layers one behind the other: (axes, extents, axes) each."""
    layers = []
    for first, dims, second in steps:
        layer = network.add_shuffle(x)
        layer.first_transpose, layer.reshape_dims, layer.second_transpose = first, dims, second
        layers.append(layer)
        x = layer.outputs[0]
    return layers


CHAINS = {
    "a channel shuffle": ((2, 12, 5, 7), [((), (2, 3, 4, 5, 7), (0, 2, 1, 3, 4)), ((), (2, 12, 5, 7), ())], 1),
    "heads": ((2, 6, 20), [((), (2, 6, 4, 5), ()), ((0, 2, 1, 3), None, ())], 1),
    "heads back": ((2, 4, 6, 5), [((0, 2, 1, 3), None, ()), ((), (2, 6, 20), ())], 1),
    "anchors": ((1, 8, 5, 7), [((0, 2, 3, 1), None, ()), ((), (1, -1, 4), ())], 1),
    "what neither side has a view of": ((4, 6), [((1, 0), None, ()), ((), (3, 8), ()), ((1, 0), None, ())], 2),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("chain", CHAINS)
def test_movements_in_a_row_are_copied_once_where_views_meet(chain, layout):
    shape, steps, copies = CHAINS[chain]
    network = Network()
    layers = chain_of(network, network.add_input("x", DataType.INT32, shape), *steps)
    feeds = random_feeds(network, np.random.default_rng(0), layout)
    feeds["x"][...] = np.arange(feeds["x"].size).reshape(shape)
    assert_like_reference(network, layers, feeds, kernel_name="cpu.movement", layout=layout, tolerance=0)
    kernel = chosen_kernel(network, layers)
    group, specs = LayerGroup(layers), specs_of(network)
    output = np.empty(layers[-1].outputs[0].shape, np.int32)
    arrays = {"x": feeds["x"], layers[-1].outputs[0].name: output}
    work = kernel.bind(Binding(group, specs, arrays, {}, np.empty(0, np.uint8), 1)).work
    assert len(work) <= copies or layout != "linear"


def slices_of(network, x):
    """Every other row of an image, then every other column."""
    images, channels, height, width = x.shape
    rows = network.add_slice(x, (0, 0, 1, 0), (images, channels, height // 2, width), (1, 1, 2, 1))
    extents = (images, channels, height // 2, width // 2)
    return [rows, network.add_slice(rows.outputs[0], (0,) * 4, extents, (1, 1, 1, 2))]


@pytest.mark.parametrize("device", ["CPU", "GPU"])
@pytest.mark.parametrize("chain", ["a channel shuffle", "slices"])
def test_only_the_host_runs_movements_in_a_row_as_one(chain, device):
    network = Network("shuffle")
    shape, steps, _ = CHAINS["a channel shuffle"]
    tensor = network.add_input("x", DataType.FLOAT, shape)
    added = slices_of(network, tensor) if chain == "slices" else chain_of(network, tensor, *steps)
    network.mark_output(added[-1].outputs[0])
    config = BuilderConfig()
    config.default_device_type = device
    engine = Builder().build_engine(network, config)
    assert (engine.num_layers == 1) == (device == "CPU")
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    (found,) = engine.create_execution_context(1).run(x).values()
    expected = x.reshape(2, 3, 4, 5, 7).swapaxes(1, 2).reshape(shape)
    np.testing.assert_array_equal(found, x[:, :, 1:4:2, 0:6:2] if chain == "slices" else expected)


@pytest.mark.parametrize("dtype", [*TYPES, DataType.BF16, DataType.INT64])
@pytest.mark.parametrize("layouts", [("linear", "channels_last"), ("channels_last", "linear")])
@pytest.mark.parametrize("shape", [(1, 3, 6, 1200), (2, 7, 40, 9)])
def test_values_that_lie_together_on_neither_side_are_copied_one_by_one(shape, layouts, dtype):
    network = Network()
    layers = slices_of(network, network.add_input("x", dtype, shape))
    feeds = random_feeds(network, np.random.default_rng(0), layouts[0])
    assert_like_reference(network, layers, feeds, kernel_name="cpu.movement", layout=layouts[1], tolerance=0)
