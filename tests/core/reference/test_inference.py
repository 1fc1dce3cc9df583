"""Shapes for concrete inputs, through shape computations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.network.random_networks import SHAPE, networks

from dryfit.errors import ExecutionError, NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layers.generators import FillOperation
from dryfit.network.network import Network
from dryfit.reference.executor import run_reference
from dryfit.reference.inference import FOLDED_ELEMENTS, infer_specs, infer_with_values


def _flattening():
    """Flatten by a computed shape: [batch, -1]."""
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (-1, 3, 4))
    zero, rest = (network.add_constant((1,), np.array([v])).get_output(0) for v in (0, -1))
    batch = network.add_gather(network.add_shape(x).get_output(0), zero, 0).get_output(0)
    shuffle = network.add_shuffle(x)
    shuffle.set_input(1, network.add_concatenation([batch, rest]).get_output(0))
    network.mark_output(shuffle.get_output(0))
    return network, shuffle.get_output(0)


def test_a_computed_reshape_is_static_once_the_input_is():
    network, output = _flattening()
    assert output.shape == (-1, -1)
    assert infer_specs(network, {"x": (5, 3, 4)})[output.name].shape == (5, 12)
    assert infer_specs(network)[output.name].shape == (-1, -1)


@pytest.mark.parametrize("shape", [(5, 3), (5, 3, 5), (-2, 3, 4)])
def test_a_shape_that_does_not_fit_the_input_is_refused(shape):
    with pytest.raises(ExecutionError) as caught:
        infer_specs(_flattening()[0], {"x": shape})
    assert caught.value.found == shape
    assert caught.value.allowed == (-1, 3, 4)


def test_a_shape_of_no_input_is_refused():
    with pytest.raises(ExecutionError, match="'y'"):
        infer_specs(_flattening()[0], {"y": (1,)})


def test_a_shape_that_a_layer_cannot_take_is_refused_by_the_layer():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (-1,))
    network.add_shuffle(x).reshape_dims = (2, -1)
    with pytest.raises(NetworkError, match="keep the number of elements"):
        infer_specs(network, {"x": (3,)})


def test_what_is_large_random_or_fails_is_left_to_run_time():
    network = Network()
    large = network.add_fill((FOLDED_ELEMENTS + 1,), FillOperation.LINSPACE)
    random = network.add_fill((2,), FillOperation.RANDOM_UNIFORM)
    small = network.add_fill((2,), FillOperation.LINSPACE)
    index = network.add_constant((1,), np.array([7])).get_output(0)
    failing = network.add_gather(small.get_output(0), index, 0)
    assert infer_with_values(large, [])[0].value is None
    assert infer_with_values(random, [])[0].value is None
    assert infer_with_values(small, [])[0].value.tolist() == [0, 1]
    assert infer_specs(network)[failing.get_output(0).name].value is None


@given(networks(dynamic=True), st.integers(1, 3))
def test_inferred_specs_are_those_of_the_arrays_that_a_run_makes(built, batch):
    network, _ = built
    specs = infer_specs(network, {"x": (batch, *SHAPE[1:])})
    found = {}
    feeds = {"x": np.ones((batch, *SHAPE[1:]), np.float32)}
    outputs = run_reference(network, feeds, lambda tensor, array: found.setdefault(tensor.name, array))
    assert outputs
    for name, array in found.items():
        assert specs[name].shape == array.shape
        assert specs[name].dtype.numpy == array.dtype
        if specs[name].value is not None:
            np.testing.assert_array_equal(specs[name].value, array)
