"""What a concatenation of channels joins is computed in its place, where nobody minds the gaps between pixels."""

from __future__ import annotations

import numpy as np
from tests.core.engine.small_networks import named
from tests.core.engine.test_binding import shares_memory

import dryfit
from dryfit.engine.binding import BoundEngine, specs_for
from dryfit.engine.resolved_operation import resolve_operations
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.movement import Concatenation
from dryfit.network.network import Network
from dryfit.plugins import registry
from dryfit.reference.executor import run_reference


def convolution(network, x, name, maps=8):
    weights = np.random.default_rng(len(name)).standard_normal((maps, x.shape[1], 1, 1)).astype(np.float32)
    return named(network, network.add_convolution_nd(x, maps, (1, 1), weights), name)


def concatenation(network, tensors, name, axis=1):
    return named(network, network.add_layer(Concatenation(axis=axis), tensors), name)


def rectified(network, x, name):
    return named(network, network.add_activation(x, ActivationType.RELU), name)


def image_network(shape=(2, 4, 5, 6)):
    network = Network("joined")
    return network, network.add_input("x", DataType.FLOAT, shape)


def bound(network, end):
    """The network bound to its shapes, with `end` through a last layer; its results are the references'."""
    network.mark_output(convolution(network, end, "last"))
    config = dryfit.BuilderConfig()
    config.default_device_type = dryfit.DeviceType.CPU
    plan = dryfit.Builder().build_engine(network, config).plan
    x = np.random.default_rng(0).standard_normal(network.inputs[0].shape).astype(np.float32)
    made = BoundEngine(plan, resolve_operations(plan), specs_for(plan, {"x": x.shape}), 1)
    (expected,) = run_reference(network, {"x": x}).values()
    for _ in range(2):
        (found,) = made.run({"x": x}).values()
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    return made


def is_inside(made, part, whole):
    return np.shares_memory(made.stored(part), made.stored(whole))


@shares_memory
def test_convolutions_write_their_channels_where_they_are_joined():
    network, x = image_network()
    first, second = convolution(network, x, "first", 5), convolution(network, x, "second", 24)
    made = bound(network, concatenation(network, [first, second], "joined"))
    joined = made.stored("joined_out")
    np.testing.assert_array_equal(made.stored("first_out"), joined[:, :5])
    assert made.stored("second_out").ctypes.data == joined.ctypes.data + 5 * 4
    assert is_inside(made, "first_out", "joined_out")


@shares_memory
def test_what_is_joined_again_lies_in_the_last_of_the_wholes():
    network, x = image_network()
    first, second = convolution(network, x, "first"), convolution(network, x, "second")
    inner = concatenation(network, [first, second], "inner")
    third = rectified(network, convolution(network, inner, "third"), "relu")
    made = bound(network, concatenation(network, [third, inner], "outer"))
    assert all(is_inside(made, f"{name}_out", "outer_out") for name in ("first", "second", "inner", "relu"))


@shares_memory
def test_joining_all_that_came_before_again_copies_nothing():
    network, x = image_network()
    parts = [convolution(network, x, "first"), convolution(network, x, "second")]
    for index in range(3):
        joined = concatenation(network, parts, f"joined{index}")
        parts.append(convolution(network, joined, f"new{index}", 3 + index))
    made = bound(network, concatenation(network, parts, "end"))
    assert all(is_inside(made, f"joined{index}_out", "end_out") for index in range(3))
    assert np.shares_memory(made.stored("joined0_out"), made.stored("joined2_out"))


@shares_memory
def test_what_is_joined_twice_or_elsewhere_is_copied():
    network, x = image_network()
    first, second = convolution(network, x, "first"), convolution(network, x, "second")
    one = concatenation(network, [first, second, first], "one")
    other = concatenation(network, [second, convolution(network, one, "third")], "other")
    rows = concatenation(network, [other, convolution(network, one, "fourth", 16)], "rows", axis=2)
    made = bound(network, rows)
    assert not is_inside(made, "first_out", "one_out")
    assert not is_inside(made, "second_out", "one_out")
    assert is_inside(made, "second_out", "other_out")
    assert not is_inside(made, "other_out", "rows_out")


def test_inputs_and_outputs_of_the_network_keep_their_own_memory():
    network, x = image_network()
    first = convolution(network, x, "first")
    network.mark_output(first)
    joined = concatenation(network, [x, first, rectified(network, first, "relu")], "joined")
    network.mark_output(convolution(network, joined, "last"))
    config = dryfit.BuilderConfig()
    config.default_device_type = dryfit.DeviceType.CPU
    context = dryfit.Builder().build_engine(network, config).create_execution_context()
    x = np.random.default_rng(0).standard_normal((2, 4, 5, 6)).astype(np.float32)
    found, expected = context.run({"x": x}), run_reference(network, {"x": x})
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-5)


@shares_memory
def test_kernels_of_packages_are_given_dense_arrays(monkeypatch):
    network, x = image_network()
    first, second = convolution(network, x, "first"), convolution(network, x, "second")
    end = concatenation(network, [first, second], "joined")
    others = {id(one) for one in registry.host().kernels if one.name != "cpu.convolution"}
    monkeypatch.setattr("dryfit.engine.binding._own_kernels", lambda: others)
    assert not is_inside(bound(network, end), "first_out", "joined_out")
