"""Weights without extents, as TensorRT's are: taken where their number fits, refused on the line that gives them."""

import numpy as np
import pytest

from dryfit import DataType, Network, ScaleMode, Weights
from dryfit.errors import NetworkError
from dryfit.reference.executor import run_reference

FLOAT, EXTENTS = DataType.FLOAT, (2, 4, 6, 6)


def of(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def convolution(network, x, kernel):
    return network.add_convolution_nd(x, 8, (3, 3), kernel, of(8))


def deconvolution(network, x, kernel):
    return network.add_deconvolution_nd(x, 6, (2, 2), kernel)


def fully_connected(network, x, kernel):
    return network.add_fully_connected(x, 5, kernel, of(5))


def scale(network, x, kernel):
    return network.add_scale(x, ScaleMode.ELEMENTWISE, scale=kernel)


def scale_by_channel(network, x, kernel):
    return network.add_scale_nd(x, ScaleMode.CHANNEL, shift=kernel, channel_axis=1)


def constant(network, x, kernel):
    return network.add_constant((4, 3), kernel)


SHAPES = {
    convolution: (8, 4, 3, 3),
    deconvolution: (4, 6, 2, 2),
    fully_connected: (5, 4 * 6 * 6),
    scale: (4, 6, 6),
    scale_by_channel: (4,),
    constant: (4, 3),
}


def outputs(add, kernel, extents=EXTENTS):
    network = Network()
    layer = add(network, network.add_input("x", FLOAT, extents), kernel)
    network.mark_output(layer.get_output(0))
    return run_reference(network, {"x": of(*EXTENTS)})[layer.get_output(0).name]


@pytest.mark.parametrize("add", SHAPES)
def test_flat_weights_of_the_right_size_are_those_in_their_extents(add):
    shaped = of(*SHAPES[add])
    expected = outputs(add, shaped)
    np.testing.assert_array_equal(outputs(add, shaped.reshape(-1)), expected)
    np.testing.assert_array_equal(outputs(add, Weights(shaped.reshape(-1))), expected)


@pytest.mark.parametrize("add", [convolution, deconvolution])
def test_flat_kernels_are_taken_where_channels_are_not_known(add):
    shaped = of(*SHAPES[add])
    np.testing.assert_array_equal(outputs(add, shaped.reshape(-1), (2, -1, 6, 6)), outputs(add, shaped))


@pytest.mark.parametrize("add", SHAPES)
@pytest.mark.parametrize("count", [1, -1])
def test_weights_of_another_size_are_refused_where_they_are_given(add, count):
    network = Network()
    x = network.add_input("x", FLOAT, EXTENTS)
    size = int(np.prod(SHAPES[add]))
    with pytest.raises(NetworkError) as error:
        add(network, x, of(size + count))
    assert str(size) in f"{error.value.allowed} {error.value.found}"
    assert add.__name__.split("_")[0] in error.value.where
    assert network.num_layers == 0


def test_a_kernel_with_other_extents_is_refused_where_it_is_given():
    network = Network()
    x = network.add_input("x", FLOAT, EXTENTS)
    for wrong in ((3, 3, 4, 8), (8, 4, 3), (8, 3, 3, 3), (4, 4, 3, 3), (8, 4, 5, 5)):
        with pytest.raises(NetworkError) as error:
            convolution(network, x, of(*wrong))
        assert error.value.found == wrong
        assert "(8, 4, 3, 3), or 288 values" in error.value.allowed
    assert network.num_layers == 0


@pytest.mark.parametrize(("add", "groups", "shape"), [(convolution, 4, (8, 1, 3, 3)), (deconvolution, 2, (4, 3, 2, 2))])
@pytest.mark.parametrize("is_flat", [False, True])
def test_the_number_of_groups_may_be_set_after_the_kernel(add, groups, shape, is_flat):
    network = Network()
    kernel = of(*shape)
    layer = add(network, network.add_input("x", FLOAT, EXTENTS), kernel.reshape(-1) if is_flat else kernel)
    layer.num_groups = groups
    assert layer.get_output(0).shape[1] == layer.num_output_maps
    np.testing.assert_array_equal(layer.kernel, kernel)


def test_a_flat_kernel_may_be_set_later_and_keeps_its_name():
    network = Network()
    layer = convolution(network, network.add_input("x", FLOAT, EXTENTS), of(8, 4, 3, 3))
    flat = of(288)
    layer.kernel = flat
    assert layer.get_output(0).shape == (2, 8, 4, 4)
    assert layer.kernel.shape == (8, 4, 3, 3)
    network.set_weights_name(flat, "flat")
    assert "flat" in {one.name for one in network.named_weights()}
