"""Memory of outputs that the caller allocates, and upper bounds of sizes that depend on data."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.engine.small_networks import convolution_network, relu_network

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.optimization_profile import OptimizationProfile
from dryfit.building import Builder
from dryfit.errors import ExecutionError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.network.layers.generators import FillOperation
from dryfit.network.network import Network
from dryfit.network.tensor import TensorSpec


class Allocator:
    """Allocates too much, and keeps what it was asked."""

    def __init__(self):
        self.asked, self.told, self.memory = [], [], None

    def __call__(self, name, size, alignment):
        self.asked.append((name, size, alignment))
        self.memory = np.full(size + 8, 99, np.uint8)
        return self.memory

    def notify_shape(self, name, shape):
        self.told.append((name, shape))


def _places(shape=(4,)):
    """x -> indices of the elements that are not 0, whose number depends on the data."""
    network = Network("late")
    x = network.add_input("x", DataType.FLOAT, shape)
    places = network.add_non_zero(x).get_output(0)
    network.rename_tensor(places, "places")
    network.mark_output(places)
    return network


def _context(network, config=None):
    return Builder().build_engine(network, config or BuilderConfig()).create_execution_context(1)


def test_an_output_whose_size_depends_on_data_is_written_to_the_callers_memory():
    context, allocator = _context(_places()), Allocator()
    context.set_output_allocator("places", allocator)
    assert context.get_output_allocator("places") is allocator
    outputs = context.run(np.array([0, 1, 2, 3], np.float32))
    assert outputs["places"].tolist() == [[1, 2, 3]]
    assert np.shares_memory(outputs["places"], allocator.memory)
    assert (allocator.memory[-8:] == 99).all()
    context.run(np.zeros(4, np.float32))
    assert [size for _, size, _ in allocator.asked] == [12, 0]
    assert allocator.told == [("places", (1, 3)), ("places", (1, 0))]


def test_a_function_is_an_allocator_and_none_removes_it():
    context = _context(relu_network())
    context.set_output_allocator("y", lambda name, size, alignment: bytearray(size))
    x = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
    np.testing.assert_array_equal(context.run(x)["y"], np.maximum(x, 0))
    context.set_output_allocator("y", None)
    assert context.get_output_allocator("y") is None
    assert context.run(x)["y"].flags.owndata


def test_an_array_given_to_the_run_takes_precedence_and_one_that_was_set_does_not():
    context, allocator = _context(relu_network()), Allocator()
    x, given, was_set = np.ones((2, 3), np.float32), *(np.zeros((2, 3), np.float32) for _ in range(2))
    context.set_output_allocator("y", allocator)
    assert context.run(x, out={"y": given})["y"] is given
    assert not allocator.asked
    assert not allocator.told
    context.set_tensor("x", x)
    context.set_tensor("y", was_set)
    assert (context.execute()["y"] == 1).all()
    assert len(allocator.asked) == 1
    assert not was_set.any()


@pytest.mark.parametrize(
    ("memory", "found"),
    [
        (lambda size: np.zeros(size - 1, np.uint8), "23 bytes"),
        (bytes, "24 read-only bytes"),
        (lambda size: None, "NoneType"),
        (lambda size: np.zeros((size, 2), np.uint8)[:, 0], "ndarray"),
    ],
)
def test_memory_that_cannot_hold_the_output_is_refused(memory, found):
    context = _context(relu_network())
    context.set_output_allocator("y", lambda name, size, alignment: memory(size))
    with pytest.raises(ExecutionError, match="must return writable, contiguous memory") as caught:
        context.run(np.ones((2, 3), np.float32))
    assert caught.value.where == "output 'y'"
    assert found in caught.value.found


@pytest.mark.parametrize("call", ["get_max_output_size", "get_output_allocator"])
def test_an_unknown_output_is_refused(call):
    with pytest.raises(UnknownNameError, match="'x'"):
        getattr(_context(relu_network()), call)("x")


def test_the_largest_size_of_a_static_output_is_its_size():
    assert _context(relu_network()).get_max_output_size("y") == 24


def test_the_largest_size_follows_from_the_shapes_that_are_set():
    config, profile = BuilderConfig(), OptimizationProfile()
    profile.set_shape("x", (1, 3, 8, 8), (2, 3, 8, 8), (4, 3, 8, 8))
    config.add_optimization_profile(profile)
    context = _context(convolution_network(-1), config)
    assert context.get_max_output_size("y") == -1
    context.set_input_shape("x", (3, 3, 8, 8))
    assert context.get_max_output_size("y") == 3 * 4 * 8 * 8 * 4


def test_every_element_can_be_non_zero():
    context = _context(_places((2, 5)))
    size = context.get_max_output_size("places")
    assert size == context.run(np.ones((2, 5), np.float32))["places"].nbytes == 2 * 10 * 4


@pytest.mark.parametrize(("limit", "topk", "expected"), [(2, 5000, 2), (9, 4, 4), (9, None, 6)])
def test_as_many_boxes_can_be_selected_as_the_limits_allow(limit, topk, expected):
    network = Network("boxes")
    boxes = network.add_input("boxes", DataType.FLOAT, (1, 6, 4))
    scores = network.add_input("scores", DataType.FLOAT, (1, 6, 3))
    layer = network.add_nms(boxes, scores, network.add_constant((), np.array(limit, np.int32)).get_output(0))
    layer.topk_box_limit = topk
    specs = [tensor.spec for tensor in layer.connected_inputs]
    found = layer.largest_outputs(specs, layer.infer_outputs(specs))
    assert found == [TensorSpec((3 * expected, 3), DataType.INT32), TensorSpec((), DataType.INT32)]


def test_an_extent_without_a_bound_has_no_largest_size():
    network = Network("filled")
    x = network.add_input("x", DataType.FLOAT, (3,))
    count = network.add_cast(x, DataType.INT64).get_output(0)
    fill = network.add_fill((1,), FillOperation.LINSPACE)
    fill.set_input(0, network.add_slice(count, (0,), (1,), (1,)).get_output(0))
    network.rename_tensor(fill.get_output(0), "filled")
    network.mark_output(fill.get_output(0))
    assert _context(network).get_max_output_size("filled") == -1
