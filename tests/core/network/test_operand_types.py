"""In a strongly typed network, operands of different types are refused with their names."""

import numpy as np
import pytest

from dryfit.errors import NetworkError
from dryfit.network.creation_flags import NetworkDefinitionCreationFlag
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ScaleMode
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.matrix import MatrixOperation
from dryfit.network.network import Network
from dryfit.network.verify import verify

FLOAT, HALF = DataType.FLOAT, DataType.HALF
STRONGLY_TYPED = 1 << NetworkDefinitionCreationFlag.STRONGLY_TYPED


def strong(shape=(1, 4, 3, 3), dtypes=(HALF, FLOAT)):
    network = Network("strong", STRONGLY_TYPED)
    return network, *(network.add_input(f"{dtype.name.lower()}_data", dtype, shape) for dtype in dtypes)


def constant(network, dtype, *shape):
    return network.add_constant(shape, np.ones(shape, dtype.numpy)).get_output(0)


ADDING = {
    "concatenation": lambda n, x, y: n.add_concatenation([x, y]),
    "convolution": lambda n, x, _: n.add_convolution_nd(x, 2, (1, 1), np.ones((2, 4, 1, 1), np.float32)),
    "deconvolution": lambda n, x, _: n.add_deconvolution_nd(x, 2, (1, 1), np.ones((4, 2, 1, 1), np.float32)),
    "einsum": lambda n, x, y: n.add_einsum([x, y], "abcd,abcd->ab"),
    "elementwise": lambda n, x, y: n.add_elementwise(x, y, ElementWiseOperation.SUM),
    "fully_connected": lambda n, x, _: n.add_fully_connected(x, 2, np.ones((2, 36), np.float32)),
    "grid_sample": lambda n, x, _: n.add_grid_sample(x, constant(n, FLOAT, 1, 2, 2, 2)),
    "matrix_multiply": lambda n, x, y: n.add_matrix_multiply(x, MatrixOperation.NONE, y, MatrixOperation.NONE),
    "normalization": lambda n, x, _: n.add_normalization(x, constant(n, FLOAT, 1, 4, 1, 1), None, 0b1100),
    "parametric_relu": lambda n, x, _: n.add_parametric_relu(x, constant(n, FLOAT, 1, 4, 1, 1)),
    "select": lambda n, x, y: n.add_select(constant(n, DataType.BOOL, 1, 1, 1, 1), x, y),
}


@pytest.mark.parametrize("kind", ADDING)
def test_operands_of_two_types_are_refused_with_the_layer_and_both_names(kind):
    network, x, y = strong()
    with pytest.raises(NetworkError) as caught:
        ADDING[kind](network, x, y)
    error = caught.value
    assert f"({kind})" in error.where
    assert "'half_data' FP16" in str(error.found)
    assert "FP32" in str(error.found)
    assert "cast layer" in error.remedy


def test_a_kernel_that_is_connected_later_is_looked_at_when_the_network_is_verified():
    network, x = strong(dtypes=(HALF,))
    layer = network.add_convolution_nd(x, 2, (1, 1))
    layer.set_input(1, constant(network, FLOAT, 2, 4, 1, 1))
    network.mark_output(layer.get_output(0))
    [problem] = verify(network)
    assert problem.rule == "layer.operand_types"
    assert "'half_data' FP16" in problem.found


def test_operands_of_one_type_and_coefficients_that_are_wider_are_taken():
    network, x, _ = strong()
    scaled = network.add_scale(x, ScaleMode.UNIFORM, scale=np.array([2], np.float32)).get_output(0)
    network.mark_output(network.add_elementwise(x, scaled, ElementWiseOperation.SUM).get_output(0))
    assert verify(network) == []
    assert network.outputs[0].dtype is HALF


def test_a_dequantization_gives_the_type_of_its_scale_unless_it_is_told_otherwise():
    network, x = strong(dtypes=(DataType.INT8,))
    scale = constant(network, HALF)
    assert network.add_dequantize(x, scale).get_output(0).dtype is HALF
    assert network.add_dequantize(x, scale, FLOAT).get_output(0).dtype is FLOAT
    weak = Network("weak")
    y = weak.add_input("y", DataType.INT8, (4,))
    assert weak.add_dequantize(y, constant(weak, HALF)).get_output(0).dtype is FLOAT
