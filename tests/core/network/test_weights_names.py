"""Weights by name: one name for the same values, wherever they stand."""

from __future__ import annotations

import numpy as np
import pytest

from dryfit.errors import NetworkError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.network.weights_role import WeightsRole

KERNEL = np.arange(16, dtype=np.float32).reshape(4, 4, 1, 1)


def network_with(*kernels: np.ndarray) -> Network:
    """Convolutions `a`, `b`, ... one after another."""
    network = Network("named")
    tensor = network.add_input("x", DataType.FLOAT, (1, 4, 2, 2))
    for name, kernel in zip("abc", kernels, strict=False):
        layer = network.add_convolution_nd(tensor, 4, (1, 1), kernel, None)
        network.rename_layer(layer, name)
        tensor = layer.get_output(0)
    network.mark_output(tensor)
    return network


def test_weights_without_a_name_go_by_layer_and_role():
    (weights,) = network_with(KERNEL).named_weights()
    assert (weights.name, weights.dtype, weights.values.shape) == ("a KERNEL", DataType.FLOAT, (4, 4, 1, 1))
    assert [(layer.name, role) for layer, role in weights.places] == [("a", WeightsRole.KERNEL)]


def test_a_name_holds_wherever_the_values_stand():
    network = network_with(KERNEL, KERNEL.copy(), KERNEL)
    assert network.set_weights_name(KERNEL.reshape(-1), "w")
    first, second = network.named_weights()
    assert (first.name, [layer.name for layer, _ in first.places]) == ("w", ["a", "c"])
    assert second.name == "b KERNEL"
    assert network.set_weights_name(KERNEL, "")
    assert [one.name for one in network.named_weights()] == ["a KERNEL", "b KERNEL"]


def test_a_transposed_view_is_other_weights():
    square = np.arange(16, dtype=np.float32).reshape(4, 4)
    network = Network("views")
    network.add_constant((4, 4), square)
    network.add_constant((4, 4), square.T)
    assert len(network.named_weights()) == 2


def test_a_made_up_name_avoids_a_given_one():
    network = network_with(KERNEL, KERNEL.copy())
    network.set_weights_name(network.layers[1].kernel, "a KERNEL")
    assert [one.name for one in network.named_weights()] == ["a KERNEL_1", "a KERNEL"]


def test_names_are_refused_twice_and_for_weights_that_are_not_there():
    network = network_with(KERNEL, KERNEL.copy())
    network.set_weights_name(KERNEL, "w")
    with pytest.raises(NetworkError, match=r"Names of weights must be unique.*found w"):
        network.set_weights_name(network.layers[1].kernel, "w")
    with pytest.raises(NetworkError, match=r"no such weights.*the same array"):
        network.set_weights_name(KERNEL.copy(), "v")
    # The name is free again when the network no longer has its weights.
    network.layers[0].kernel = KERNEL.copy()
    assert network.set_weights_name(network.layers[1].kernel, "w")


def test_weights_are_marked_by_name():
    network = network_with(KERNEL)
    assert not network.are_weights_marked_refittable("a KERNEL")
    assert network.mark_weights_refittable("a KERNEL")
    assert network.are_weights_marked_refittable("a KERNEL")
    assert network.unmark_weights_refittable("a KERNEL")
    assert not network.are_weights_marked_refittable("a KERNEL")
    with pytest.raises(UnknownNameError, match="Did you mean 'a KERNEL'"):
        network.mark_weights_refittable("a kernel")


def test_initializers_give_their_names_to_weights():
    from tests.core.onnx.models import model

    from dryfit.onnx.importer import network_from_onnx

    parsed = model(
        "c = Conv<kernel_shape=[1, 1]>(x, w) y = Add(c, b)",
        inputs="float[1,4,2,2] x",
        outputs="float[1,4,2,2] y",
        weights={"w": KERNEL, "b": np.ones((1, 4, 1, 1), np.float32)},
    )
    network = network_from_onnx(parsed)
    assert [(one.name, one.places[0][0].name) for one in network.named_weights()] == [("w", "node_of_c"), ("b", "b")]
