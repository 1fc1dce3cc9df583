import numpy as np
from tests.core.builder.networks import activation, add, convolution, image_network, named

from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.target.forks import MOST_LAYERS, fork_after, fork_at, with_next


def product(network, a, b, name):
    return named(network.add_elementwise(a, b, ElementWiseOperation.PROD), name)


def names(layers):
    return [layer.name for layer in layers]


def test_a_fork_ends_where_its_branches_meet():
    network, x = image_network()
    left = activation(network, x, "left")
    network.mark_output(product(network, activation(network, left, "further"), x, "meet"))
    assert names(fork_after(x)) == ["left", "further", "meet"]
    assert fork_after(left) == ()


def test_the_largest_window_is_the_first_of_a_fork():
    network, x = image_network()
    left, small = activation(network, x, "left"), convolution(network, x, "small", kernel=1)
    large = convolution(network, x, "large")
    network.mark_output(add(network, add(network, left, small, "sum"), large, "meet"))
    assert names(fork_after(x)) == ["large", "small", "left", "sum", "meet"]


def test_constants_may_be_read_inside_of_a_fork():
    network, x = image_network()
    one = network.add_constant((1, 1, 1, 1), np.ones((1, 1, 1, 1), np.float32)).get_output(0)
    network.mark_output(product(network, x, add(network, x, one, "moved"), "meet"))
    assert names(fork_after(x)) == ["moved", "meet"]


def test_layers_that_read_other_tensors_are_no_fork():
    network, x = image_network()
    other = network.add_input("other", x.dtype, x.shape)
    network.mark_output(product(network, x, add(network, x, other, "moved"), "meet"))
    assert fork_after(x) == ()


def test_what_others_see_of_a_branch_makes_it_no_fork():
    network, x = image_network()
    left = activation(network, x, "left")
    network.mark_output(product(network, x, left, "meet"))
    assert fork_after(x)
    network.mark_output(left)
    assert fork_after(x) == ()


def test_branches_that_never_meet_are_no_fork():
    network, x = image_network()
    for name in ("left", "right"):
        network.mark_output(activation(network, x, name))
    assert fork_after(x) == ()


def test_a_square_is_no_fork():
    network, x = image_network()
    network.mark_output(product(network, x, x, "square"))
    assert fork_after(x) == ()


def test_a_long_fork_is_not_looked_through():
    network, x = image_network()
    value = x
    for index in range(MOST_LAYERS):
        value = activation(network, value, f"r{index}")
    network.mark_output(product(network, x, value, "meet"))
    assert fork_after(x) == ()


def test_the_layer_behind_a_fork_may_only_scale_its_result():
    network, x = image_network()
    half = network.add_constant((1, 1, 1, 1), np.full((1, 1, 1, 1), 0.5, np.float32)).get_output(0)
    meet = product(network, x, activation(network, x, "left"), "meet")
    end = product(network, meet, half, "end")
    network.mark_output(product(network, end, x, "outside"))
    fork = network.layers[1:3]
    assert names(with_next(fork)) == ["left", "meet", "end"]
    assert names(with_next([*fork, end.producer])) == ["left", "meet", "end"]


def test_a_fork_is_found_in_a_group_of_layers():
    network, x = image_network()
    first = activation(network, x, "first")
    network.mark_output(product(network, first, activation(network, first, "left"), "meet"))
    layers = list(network.layers)
    assert [fork_at(layers, place) for place in range(3)] == [0, 2, 0]
    assert fork_at(layers[:2], 1) == 0
