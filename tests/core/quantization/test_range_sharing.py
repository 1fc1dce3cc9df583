"""Groups of tensors with one range, and which of them decides."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.builder.networks import activation, convolution, image_network, named

from dryfit.network.layers.resize import InterpolationMode
from dryfit.network.layers.window_layer import PoolingType
from dryfit.quantization.range_sharing import sharing_groups


def groups(network):
    return [(list(one.tensors), list(one.deciding), one.rule) for one in sharing_groups(network)]


def pooled(network, x, name, kind=PoolingType.MAX):
    return named(network.add_pooling_nd(x, kind, (2, 2)), name)


def joined(network, name, *tensors):
    layer = network.add_concatenation(list(tensors))
    layer.axis = 1
    return named(layer, name)


def test_the_output_of_a_concatenation_decides_for_its_inputs():
    network, x = image_network()
    a, b = convolution(network, x, "a"), convolution(network, x, "b")
    network.mark_output(joined(network, "both", a, b))
    assert groups(network) == [(["a", "b", "both"], ["both"], "concatenation")]


@pytest.mark.parametrize(("kind", "decides"), [(PoolingType.MAX, "pooled"), (PoolingType.AVERAGE, "a")])
def test_a_maximum_has_the_range_of_its_output_and_an_average_that_of_its_input(kind, decides):
    network, x = image_network()
    network.mark_output(pooled(network, convolution(network, x, "a"), "pooled", kind))
    ((tensors, deciding, _),) = groups(network)
    assert (tensors, deciding) == (["a", "pooled"], [decides])


def test_groups_that_touch_are_one_and_the_tensors_that_nothing_covers_decide():
    network, x = image_network()
    a, b = convolution(network, x, "a"), convolution(network, x, "b")
    first = joined(network, "first", a, b)
    second = joined(network, "second", first, convolution(network, x, "c"))
    network.mark_output(pooled(network, second, "pooled"))
    other = joined(network, "other", a, convolution(network, x, "d"))
    network.mark_output(other)
    ((tensors, deciding, rule),) = groups(network)
    assert tensors == ["a", "b", "first", "c", "second", "pooled", "d", "other"]
    assert (deciding, rule) == (["pooled", "other"], "concatenation, maximum pooling")


def test_a_reshape_keeps_the_range_and_a_slice_has_that_of_what_it_is_cut_from():
    network, x = image_network()
    a = convolution(network, x, "a")
    shuffle = network.add_shuffle(a)
    shuffle.reshape_dims = (1, 4, 2, 36)
    network.mark_output(named(shuffle, "reshaped"))
    b = convolution(network, x, "b")
    network.mark_output(named(network.add_slice(b, (0, 0, 0, 0), (1, 4, 6, 6), (1, 1, 1, 1)), "cut"))
    assert [(tensors, name) for tensors, name, _ in groups(network)] == [
        (["a", "reshaped"], ["reshaped"]),
        (["b", "cut"], ["b"]),
    ]


def test_values_that_a_layer_makes_anew_are_in_no_group():
    network, x = image_network()
    relu = activation(network, convolution(network, x, "a"), "relu")
    resize = network.add_resize(relu)
    resize.scales = (1, 1, 2, 2)
    resize.resize_mode = InterpolationMode.LINEAR
    network.mark_output(named(resize, "larger"))
    assert groups(network) == []


def test_a_constant_that_is_joined_needs_no_range():
    network, x = image_network()
    constant = named(network.add_constant((1, 8, 6, 6), np.ones((1, 8, 6, 6), np.float32)), "k")
    network.mark_output(joined(network, "both", convolution(network, x, "a"), constant))
    assert [tensors for tensors, *_ in groups(network)] == [["a", "both"]]


@pytest.mark.parametrize("movement", ["shuffle", "squeeze", "identity"])
def test_what_an_average_reads_decides_for_every_reshape_of_the_average(movement):
    network, x = image_network()
    relu = activation(network, convolution(network, x, "a"), "relu")
    average = pooled(network, relu, "average", PoolingType.AVERAGE)
    if movement == "shuffle":
        moved = network.add_shuffle(average)
        moved.reshape_dims = (1, -1, 1, 1)
    elif movement == "squeeze":
        moved = network.add_squeeze(average, network.add_constant((1,), np.int64([0])).get_output(0))
    else:
        moved = network.add_identity(average)
    network.mark_output(named(moved, "moved"))
    ((tensors, deciding, _),) = groups(network)
    assert (tensors, deciding) == (["relu", "average", "moved"], ["relu"])


def test_an_average_that_is_joined_leaves_both_what_it_reads_and_what_it_is_joined_to():
    network, x = image_network()
    average = pooled(network, convolution(network, x, "a"), "average", PoolingType.AVERAGE)
    network.mark_output(joined(network, "both", average, pooled(network, convolution(network, x, "b"), "c")))
    ((tensors, deciding, _),) = groups(network)
    assert (tensors, set(deciding)) == (["a", "average", "b", "c", "both"], {"a", "both"})
