import numpy as np
import pytest

from dryfit.network.data_types import DataType
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.generators import FillOperation
from dryfit.network.network import Network


def network_with(length=2, dtype=DataType.INT64):
    network = Network("net")
    return network, network.add_input("x", DataType.FLOAT, (4, 6)), network.add_input("sizes", dtype, (length,))


def reader(network, x, kind):
    """A layer of a kind, and how many inputs it has in front of its dimension inputs."""
    match kind:
        case "shuffle":
            return network.add_shuffle(x)
        case "slice":
            return network.add_slice(x, (0, 0), (1, 1), (1, 1))
        case "resize":
            return network.add_resize(x)
        case _:
            return network.add_fill((2, 2), FillOperation.RANDOM_UNIFORM)


@pytest.mark.parametrize(
    ("kind", "index"), [("shuffle", 1), ("slice", 1), ("slice", 2), ("slice", 3), ("resize", 1), ("fill", 0)]
)
@pytest.mark.parametrize("dtype", [DataType.INT32, DataType.INT64])
def test_an_input_that_dimensions_are_read_from_is_a_shape_tensor(kind, index, dtype):
    network, x, sizes = network_with(dtype=dtype)
    assert not sizes.is_shape_tensor
    reader(network, x, kind).set_input(index, sizes)
    assert sizes.is_shape_tensor
    assert not sizes.is_execution_tensor
    assert not x.is_shape_tensor


def test_an_input_that_dimensions_are_computed_from_is_a_shape_tensor():
    network, x, sizes = network_with()
    two = network.add_constant((2,), np.full(2, 2, np.int64)).get_output(0)
    doubled = network.add_elementwise(sizes, two, ElementWiseOperation.PROD).get_output(0)
    assert not sizes.is_shape_tensor
    network.add_shuffle(x).set_input(1, doubled)
    assert sizes.is_shape_tensor


def test_an_input_whose_shape_alone_matters_is_none():
    network, x, sizes = network_with()
    indices = network.add_input("indices", DataType.INT64, (-1,))
    network.add_slice(indices, (0,), (1,), (1,)).set_input(2, network.add_shape(indices).get_output(0))
    assert not indices.is_shape_tensor
    assert not sizes.is_shape_tensor
    assert not x.is_shape_tensor


def test_data_whose_count_of_nonzeros_leads_to_dimensions_is_none():
    network = Network("net")
    x = network.add_input("x", DataType.FLOAT, (2, 3))
    found = network.add_non_zero(x).get_output(0)
    network.add_fill((1,), FillOperation.RANDOM_UNIFORM).set_input(0, network.add_shape(found).get_output(0))
    assert not x.is_shape_tensor


def test_an_input_is_a_shape_tensor_also_while_its_layer_does_not_fit_it():
    network = Network("net")
    scalar = network.add_input("scalar", DataType.INT32, ())
    network.add_fill((), FillOperation.LINSPACE).set_input(0, scalar)
    assert scalar.is_shape_tensor
