import numpy as np
from tests.core.builder.networks import image_network, named, weights

from dryfit.builder.placement.roles import LayerRole, layer_roles
from dryfit.network.data_types import DataType
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.matrix import MatrixOperation
from dryfit.network.network import Network
from dryfit.network.tensor import TensorLocation


def test_constants_work_and_shape_computations_are_told_apart():
    network, x = image_network((-1, 8, 6, 6))
    shape = named(network.add_shape(x), "shape")
    two = named(network.add_constant((4,), np.full(4, 2, np.int64)), "two")
    doubled = named(network.add_elementwise(shape, two, ElementWiseOperation.PROD), "doubled")
    resize = network.add_resize(x)
    resize.set_input(1, doubled)
    network.mark_output(named(resize, "resize"))
    assert layer_roles(network) == {
        "shape": LayerRole.SHAPE,
        "two": LayerRole.CONSTANT,
        "doubled": LayerRole.SHAPE,
        "resize": LayerRole.WORK,
    }


def test_what_is_computed_from_constants_alone_is_work():
    network, x = image_network((1, 8))
    scale = network.add_constant((), np.float32(0.5)).get_output(0)
    kernel = network.add_constant((8, 8), np.ones((8, 8), np.int8)).get_output(0)
    dequantized = named(network.add_dequantize(kernel, scale, DataType.FLOAT), "dequantized")
    product = network.add_matrix_multiply(x, MatrixOperation.NONE, dequantized, MatrixOperation.NONE)
    network.mark_output(named(product, "product"))
    roles = layer_roles(network)
    assert roles["dequantized"] is LayerRole.WORK
    assert roles["product"] is LayerRole.WORK


def test_what_follows_from_an_input_on_the_host_is_a_shape_computation():
    network = Network()
    sizes = network.add_input("sizes", DataType.INT64, (2,))
    sizes.location = TensorLocation.HOST
    network.mark_output(named(network.add_elementwise(sizes, sizes, ElementWiseOperation.SUM), "sum"))
    assert layer_roles(network) == {"sum": LayerRole.SHAPE}


def test_a_layer_that_reads_data_and_constants_is_work():
    network, x = image_network((4, 4))
    constant = network.add_constant((4, 4), weights(4, 4)).get_output(0)
    network.mark_output(named(network.add_elementwise(x, constant, ElementWiseOperation.SUM), "sum"))
    assert layer_roles(network)["sum"] is LayerRole.WORK
