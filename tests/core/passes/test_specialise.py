"""A network with dynamic shapes is made for those it will run with."""

import numpy as np
import pytest

from dryfit.errors import ExecutionError
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.network import Network
from dryfit.passes.specialise import specialise


def _network():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (-1, 3, 4))
    x.set_dimension_name(0, "batch")
    relu = network.add_activation(x, ActivationType.RELU).get_output(0)
    zero = network.add_constant((1,), np.array([0])).get_output(0)
    batch = network.add_gather(network.add_shape(relu).get_output(0), zero, 0).get_output(0)
    rest = network.add_constant((1,), np.array([12])).get_output(0)
    shuffle = network.add_shuffle(relu)
    shuffle.set_input(1, network.add_concatenation([batch, rest]).get_output(0))
    network.rename_tensor(shuffle.get_output(0), "y")
    network.mark_output(shuffle.get_output(0))
    return network


def test_shape_computations_are_gone_and_the_original_stays():
    network = _network()
    special = specialise(network, {"x": (5, 3, 4)})
    assert [layer.kind for layer in special] == ["activation", "shuffle"]
    assert special[1].reshape_dims == (5, 12)
    assert special.tensor("y").shape == (5, 12)
    assert special.tensor("x").dimension_names == {}
    assert network.tensor("y").shape == (-1, -1)
    assert network.tensor("x").dimension_names == {0: "batch"}
    assert len(network) == 7


def test_an_input_without_a_shape_stays_dynamic():
    special = specialise(_network(), {})
    assert special.tensor("x").shape == (-1, 3, 4)
    assert special.tensor("x").dimension_names == {0: "batch"}


def test_a_shape_that_does_not_fit_is_refused():
    with pytest.raises(ExecutionError, match=r"found \(5, 3, 5\); allowed: \(-1, 3, 4\)"):
        specialise(_network(), {"x": (5, 3, 5)})
