"""Tensors without memory of their own: what a concatenation joins, and what a layer only sees otherwise."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.engine.small_networks import named
from tests.core.engine.test_binding import shares_memory

import dryfit
from dryfit.engine.binding import BoundEngine, specs_for
from dryfit.engine.resolved_operation import resolve_operations
from dryfit.engine.shared_memory import Inside
from dryfit.errors import PluginError
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.elementwise import UnaryOperation
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
    return checked(network)


def checked(network):
    config = dryfit.BuilderConfig()
    config.default_device_type = dryfit.DeviceType.CPU
    plan = dryfit.Builder().build_engine(network, config).plan
    x = np.random.default_rng(0).standard_normal(network.inputs[0].shape).astype(np.float32)
    made = BoundEngine(plan, resolve_operations(plan), specs_for(plan, {"x": x.shape}), 1)
    expected = run_reference(network, {"x": x})
    for _ in range(2):
        for name, found in made.run({"x": x}).items():
            np.testing.assert_allclose(found, expected[name], rtol=1e-4, atol=1e-5)
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


def negative(network, x, name):
    return named(network, network.add_unary(x, UnaryOperation.NEG), name)


def reshaped(network, x, dims, name, first=None, second=None):
    layer = network.add_shuffle(x)
    layer.first_transpose, layer.reshape_dims, layer.second_transpose = first, dims, second
    return named(network, layer, name)


def rows_network(shape=(3, 4, 16)):
    network = Network("rows")
    return network, network.add_input("x", DataType.FLOAT, shape)


def bound_rows(network, *ends):
    """The network bound to its shapes, with each end through a last layer; its results are the references'."""
    for index, end in enumerate(ends):
        network.mark_output(negative(network, end, f"end{index}"))
    return checked(network)


@shares_memory
def test_a_reshape_lies_in_its_input():
    network, x = rows_network()
    made = bound_rows(network, reshaped(network, negative(network, x, "u"), (12, 16), "seen"))
    assert made.stored("seen_out").ctypes.data == made.stored("u_out").ctypes.data


@shares_memory
def test_a_part_of_the_first_axis_lies_in_its_input_as_long_as_it_is_read():
    network, x = rows_network()
    u = negative(network, x, "u")
    index = network.add_constant((), np.array(1, np.int64)).get_output(0)
    picked = named(network, network.add_gather(u, index, 0), "picked")
    last = named(network, network.add_slice(u, (2, 0, 0), (1, 4, 16), (1, 1, 1)), "last")
    value = u
    for number in range(4):
        value = negative(network, value, f"other{number}")
    made = bound_rows(network, value, picked, reshaped(network, last, (4, 16), "flat"))
    assert all(is_inside(made, name, "u_out") for name in ("picked_out", "flat_out"))
    assert not is_inside(made, "end0_out", "u_out")


@shares_memory
def test_what_does_not_lie_together_is_copied():
    network, x = rows_network()
    u = negative(network, x, "u")
    turned = reshaped(network, u, (16, 12), "turned", first=(2, 0, 1))
    columns = named(network, network.add_slice(u, (0, 0, 4), (3, 4, 8), (1, 1, 1)), "columns")
    made = bound_rows(network, turned, columns)
    assert not is_inside(made, "turned_out", "u_out")
    assert not is_inside(made, "columns_out", "u_out")


@shares_memory
def test_the_network_s_input_is_seen_otherwise_too_and_its_outputs_are_copies():
    network, x = rows_network()
    seen = reshaped(network, x, (48, 4), "seen")
    again = reshaped(network, seen, (4, 48), "again")
    network.mark_output(again)
    made = bound_rows(network, seen)
    assert is_inside(made, "seen_out", "x")
    assert not is_inside(made, "again_out", "x")


@shares_memory
def test_what_is_joined_may_be_seen_otherwise():
    network, x = image_network((1, 4, 1, 1))
    joined = concatenation(network, [convolution(network, x, "a"), convolution(network, x, "bc")], "joined")
    made = bound_rows(network, reshaped(network, joined, (1, 16), "flat"))
    assert is_inside(made, "flat_out", "joined_out")
    assert is_inside(made, "a_out", "flat_out")


@shares_memory
def test_a_long_connection_is_joined_by_a_copy_where_its_place_would_take_much_memory():
    network, x = image_network((1, 8, 16, 16))
    value = skipped = convolution(network, x, "skipped", 8)
    for number, maps in enumerate((16, 32, 64, 32)):
        value = convolution(network, value, f"c{number}", maps)
    made = bound(network, concatenation(network, [value, skipped], "joined"))
    assert not is_inside(made, "skipped_out", "joined_out")


def test_what_a_kernel_no_longer_sees_otherwise_is_an_error():
    with pytest.raises(PluginError, match="must give one of every array like it"):
        Inside("x", seen=lambda array: None).view(np.zeros(1))
