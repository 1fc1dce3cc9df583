"""The executor runs what is needed, drops what is not, and follows shapes that depend on the data."""

import numpy as np
import pytest

from dryfit.errors import ExecutionError
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.indexing import GatherMode
from dryfit.network.network import Network
from dryfit.reference.executor import run_reference


def _network():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (-1, 2))
    relu = network.add_activation(x, ActivationType.RELU).get_output(0)
    double = network.add_elementwise(relu, relu, ElementWiseOperation.SUM).get_output(0)
    network.rename_tensor(double, "y")
    network.mark_output(double)
    return network


X = np.array([[-1, 2], [3, -4]], np.float32)


def test_it_computes_the_outputs_by_name():
    outputs = run_reference(_network(), {"x": X})
    assert outputs.keys() == {"y"}
    assert outputs["y"].tolist() == [[0, 4], [6, 0]]


def test_shapes_may_depend_on_the_data():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (-1, 2))
    places = network.add_non_zero(network.add_activation(x, ActivationType.RELU).get_output(0), DataType.INT64)
    turned = network.add_shuffle(places.get_output(0))
    turned.first_transpose = (1, 0)
    picked = network.add_gather_v2(x, turned.get_output(0), GatherMode.ND).get_output(0)
    network.rename_tensor(picked, "positive")
    network.mark_output(picked)
    assert picked.shape == (-1,)
    assert run_reference(network, {"x": X})["positive"].tolist() == [2, 3]


def test_what_no_output_needs_is_not_run():
    network = _network()
    network.add_slice(network.tensor("x"), (0, 0), (9, 2), (1, 1))  # would fail on two rows
    assert run_reference(network, {"x": X})["y"].tolist() == [[0, 4], [6, 0]]


def test_an_input_may_be_an_output_and_used_again():
    network = _network()
    network.mark_output(network.tensor("x"))
    network.mark_output(network[0].get_output(0))
    outputs = run_reference(network, {"x": X})
    assert len(outputs) == 3
    np.testing.assert_array_equal(outputs["x"], X)


def test_every_tensor_is_observed_in_order():
    seen = []
    network = _network()
    run_reference(network, {"x": X}, lambda tensor, array: seen.append((tensor.name, array.shape)))
    assert seen == [("x", (2, 2)), (network[0].get_output(0).name, (2, 2)), ("y", (2, 2))]


def test_tensors_are_dropped_after_their_last_use():
    network = Network()
    x = y = network.add_input("x", DataType.FLOAT, (4,))
    for _ in range(5):
        y = network.add_activation(y, ActivationType.TANH).get_output(0)
    network.mark_output(y)
    import weakref

    alive, most = [], 0

    def observe(tensor, array):
        nonlocal most
        if tensor is not x:
            alive.append(weakref.ref(array))
            most = max(most, sum(reference() is not None for reference in alive))

    run_reference(network, {"x": np.ones(4, np.float32)}, observe)
    assert most <= 2


@pytest.mark.parametrize(
    ("feeds", "text"),
    [
        ({}, "none for 'x'"),
        ({"x": X.astype(np.float64)}, "found float64; allowed: float32"),
        ({"x": X[:, :1]}, r"found \(2, 1\); allowed: \(-1, 2\)"),
        ({"x": X[0]}, r"found \(2,\)"),
        ({"x": X, "z": X}, "Unknown input"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(feeds, text):
    with pytest.raises(ExecutionError, match=text):
        run_reference(_network(), feeds)
