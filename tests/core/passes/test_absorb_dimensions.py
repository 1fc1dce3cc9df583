"""Constant dimension inputs become parameters."""

import numpy as np
import pytest

from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.passes.absorb_dimensions import absorb_dimensions
from dryfit.reference.executor import run_reference


def _network():
    network = Network()
    return network, network.add_input("x", DataType.FLOAT, (2, 3, 4))


def _vector(network, *values):
    return network.add_constant((len(values),), np.array(values)).get_output(0)


def test_a_slice_takes_its_bounds_and_keeps_its_fill_value():
    network, x = _network()
    layer = network.add_slice(x, (), (), ())
    for index, values in ((1, (1,)), (2, (2,)), (3, (-1,)), (5, (-1,))):
        layer.set_input(index, _vector(network, *values))
    fill = network.add_constant((), np.float32(7)).get_output(0)
    layer.set_input(4, fill)
    network.mark_output(layer.get_output(0))
    data = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    before = run_reference(network, {"x": data})
    assert absorb_dimensions(network)
    assert (layer.start, layer.shape, layer.stride, layer.axes) == ((1,), (2,), (-1,), (-1,))
    assert layer.inputs == [x, None, None, None, fill]
    after = run_reference(network, {"x": data})
    np.testing.assert_array_equal(*before.values(), *after.values())


@pytest.mark.parametrize(("kind", "dims"), [("shuffle", (4, -1)), ("resize", (2, 6, 8))])
def test_a_reshape_and_a_resize_take_their_extents(kind, dims):
    network, x = _network()
    layer = network.add_shuffle(x) if kind == "shuffle" else network.add_resize(x)
    layer.set_input(1, _vector(network, *dims))
    shape = layer.get_output(0).shape
    assert absorb_dimensions(network)
    assert layer.inputs == [x]
    assert layer.get_output(0).shape == shape
    assert (layer.reshape_dims if kind == "shuffle" else layer.shape) == dims


def test_dimensions_that_are_computed_at_run_time_stay():
    network, x = _network()
    target = network.add_input("target", DataType.INT64, (2,))
    network.add_shuffle(x).set_input(1, target)
    assert not absorb_dimensions(network)
