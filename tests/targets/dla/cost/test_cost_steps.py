"""Which layers the cost model takes as one step, and what the step reads and writes."""

from __future__ import annotations

import numpy as np
import pytest

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.window_layer import PoolingType
from dryfit.network.network import Network
from dryfit.network.tensor import TensorSpec
from dryfit.target.cost import CostQuestion
from dryfit_dla.cost.parameters import PARAMETERS
from dryfit_dla.cost.steps import steps_of
from dryfit_dla.platforms import PLATFORMS


@pytest.fixture
def network():
    return Network("steps")


def image(network, channels=64, extent=8):
    return network.add_input("x", DataType.FLOAT, (2, channels, extent, extent))


def convolution(network, x, maps=64, groups=1):
    kernel = np.zeros((maps, x.shape[1] // groups, 1, 1), np.float32)
    layer = network.add_convolution_nd(x, maps, (1, 1), kernel)
    layer.num_groups = groups
    return layer.outputs[0]


def relu(network, x):
    return network.add_activation(x, ActivationType.RELU).outputs[0]


def total(network, first, second):
    return network.add_elementwise(first, second, ElementWiseOperation.SUM).outputs[0]


def steps(network, dtype=DataType.INT8, layers=None):
    chosen = network.layers if layers is None else layers
    specs = {tensor.name: TensorSpec(tensor.shape, dtype) for tensor in network.tensors}
    precisions = {layer.name: dtype for layer in chosen}
    return steps_of(CostQuestion(chosen, specs, PLATFORMS[0], precisions=precisions), PARAMETERS["agx-orin-64"])


def kinds(network, found):
    return [[network.layer(name).kind for name in step.layers] for step in found]


def test_what_follows_a_convolution_in_the_pipe_is_in_its_step(network):
    x = image(network)
    scaled = network.add_scale_nd(
        convolution(network, x), _uniform(), np.float32([0]), np.float32([2]), None, 1
    ).outputs[0]
    network.mark_output(relu(network, scaled))
    assert kinds(network, steps(network)) == [["convolution", "scale", "activation"]]


def _uniform():
    from dryfit.network.layers.activation import ScaleMode

    return ScaleMode.UNIFORM


def test_a_residual_is_read_by_the_step_that_adds_it(network):
    x = image(network)
    network.mark_output(relu(network, total(network, convolution(network, x), x)))
    (step,) = steps(network)
    assert [(one.channels, one.positions) for one in step.inputs] == [(64, 64), (64, 64)]


def test_a_sum_of_two_convolutions_joins_the_later(network):
    x = image(network)
    first, second = convolution(network, x), convolution(network, x)
    network.mark_output(total(network, first, second))
    found = steps(network)
    assert kinds(network, found) == [["convolution"], ["convolution", "elementwise"]]
    assert len(found[1].inputs) == 2


def test_a_step_adds_one_tensor(network):
    x = image(network)
    y = total(network, convolution(network, x), x)
    network.mark_output(total(network, y, x))
    assert kinds(network, steps(network)) == [["convolution", "elementwise"], ["elementwise"]]


def test_a_result_that_others_read_ends_its_step(network):
    y = convolution(network, image(network))
    network.mark_output(relu(network, y))
    network.mark_output(convolution(network, y))
    assert kinds(network, steps(network)) == [["convolution"], ["activation"], ["convolution"]]


def test_a_result_of_the_network_ends_its_step(network):
    y = convolution(network, image(network))
    network.mark_output(y)
    network.mark_output(relu(network, y))
    assert kinds(network, steps(network)) == [["convolution"], ["activation"]]


def test_pooling_is_a_step_of_its_own(network):
    y = network.add_pooling_nd(convolution(network, image(network)), PoolingType.MAX, (2, 2)).outputs[0]
    network.mark_output(relu(network, y))
    assert kinds(network, steps(network)) == [["convolution"], ["pooling"], ["activation"]]


@pytest.mark.parametrize(("channels", "count"), [(64, 2), (32, 2), (48, 3)])
def test_a_concatenation_is_free_at_whole_blocks_of_channels(network, channels, count):
    x = image(network)
    parts = [convolution(network, x, channels), convolution(network, x, 64)]
    network.mark_output(network.add_concatenation(parts).outputs[0])
    assert len(steps(network)) == count


def test_layers_that_only_change_types_are_looked_through(network):
    scale = network.add_constant((), np.float32(0.5)).outputs[0]
    y = convolution(network, image(network))
    quantized = network.add_quantize(y, scale, DataType.INT8).outputs[0]
    network.mark_output(relu(network, network.add_dequantize(quantized, scale, DataType.FLOAT).outputs[0]))
    assert kinds(network, steps(network)) == [["convolution", "activation"]]


@pytest.mark.parametrize(("channels", "is_image"), [(1, True), (2, False), (3, True), (4, True), (5, False)])
def test_an_input_of_one_three_or_four_channels_is_an_image(network, channels, is_image):
    network.mark_output(convolution(network, image(network, channels)))
    (step,) = steps(network)
    assert step.inputs[0].is_image is step.kernels.is_image is is_image


def test_few_channels_inside_of_a_segment_are_no_image(network):
    network.mark_output(convolution(network, convolution(network, image(network), 3)))
    first, second = network.layers
    assert [step.kernels.is_image for step in steps(network)] == [False, False]
    assert steps(network, layers=[second])[0].kernels.is_image
    assert first.kind == "convolution"


def test_the_batch_multiplies_positions(network):
    network.mark_output(convolution(network, image(network, extent=5)))
    (step,) = steps(network)
    assert step.kernels.positions == 2 * 25
    assert step.kernels.macs == 2 * 25 * 64 * 64


def test_a_deconvolution_multiplies_at_the_positions_of_its_input(network):
    layer = network.add_deconvolution_nd(image(network), 32, (2, 2), np.zeros((64, 32, 2, 2), np.float32))
    layer.stride_nd = (2, 2)
    network.mark_output(layer.outputs[0])
    (step,) = steps(network)
    assert step.kernels.macs == 2 * 64 * 4 * 64 * 32
    assert step.outputs[0].positions == 256


def test_a_product_with_a_constant_matrix_is_a_convolution_of_one_by_one(network):
    x = network.add_input("x", DataType.FLOAT, (6, 40))
    weights = network.add_constant((40, 10), np.zeros((40, 10), np.float32)).outputs[0]
    network.mark_output(network.add_matrix_multiply(x, _none(), weights, _none()).outputs[0])
    (step,) = steps(network)
    assert (step.kernels.channels, step.kernels.maps, step.kernels.positions) == (40, 10, 6)


def _none():
    from dryfit.network.layers.matrix import MatrixOperation

    return MatrixOperation.NONE
