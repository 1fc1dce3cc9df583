"""Where INT8 saves more bytes than conversions around it cost."""

from __future__ import annotations

import math

from tests.core.builder.networks import activation, chain, convolution, image_network, named

from dryfit.builder.precision.int8_benefit import layers_without_benefit
from dryfit.network.layers.window_layer import PoolingType


def losing(network, real=(), width=4):
    names = [layer.name for layer in network.layers]
    return set(
        layers_without_benefit(
            network.layers,
            [name for name in names if name not in real],
            dict.fromkeys(names, width),
            lambda tensor: math.prod(tensor.shape),
            lambda tensor: tensor.name != "k",
        )
    )


def test_a_cheap_layer_between_real_ones_stays_real():
    assert losing(chain("c", "r", "c"), real=("c0", "c2")) == {"r1"}


def test_a_cheap_layer_between_int8_ones_is_int8():
    assert losing(chain("c", "r", "c")) == set()


def test_a_sum_of_products_is_worth_its_conversions():
    assert losing(chain("r", "c", "r"), real=("r0", "r2")) == set()


def test_one_int8_neighbour_is_enough_to_save_a_conversion():
    assert losing(chain("c", "r", "c"), real=("c2",)) == set()


def test_a_relu_goes_with_the_sum_of_products_before_it_whoever_reads_it():
    network, x = image_network((1, 8, 8, 8))
    relu = activation(network, convolution(network, x, "a", kernel=1), "relu")
    network.mark_output(convolution(network, relu, "b"))
    assert losing(network, real=("b",)) == set()
    assert losing(network, real=("a",)) == set()
    assert losing(network, real=("a", "b")) == {"relu"}


def test_a_pooling_is_int8_where_its_large_side_is_and_not_where_its_small_one_is():
    network, x = image_network((1, 8, 8, 8))
    pooled = named(network.add_pooling_nd(convolution(network, x, "a"), PoolingType.MAX, (8, 8)), "pooled")
    network.mark_output(convolution(network, pooled, "b", kernel=1))
    assert losing(network, real=("b",)) == set()
    assert losing(network, real=("a",)) == {"pooled"}


def test_a_chain_is_looked_at_as_a_whole():
    network = chain("c", "r", "r", "r", "c")
    # 3 layers save 2 * 3 bytes each of an element, and two conversions cost 5 each.
    assert losing(network, real=("c0", "c4")) == set()
    # In FP16 they save 2 bytes each, and the conversions cost 3 each: nothing is gained.
    assert losing(network, real=("c0", "c4"), width=2) == {"r1", "r2", "r3"}


def test_the_caller_of_the_engine_has_real_numbers():
    assert losing(chain("r")) == {"r0"}


def test_layers_that_touch_only_real_ones_do_not_depend_on_each_other():
    network, x = image_network()
    a = activation(network, convolution(network, x, "a"), "beside")
    b = activation(network, convolution(network, x, "b"), "alone")
    network.mark_output(convolution(network, a, "c"))
    network.mark_output(convolution(network, b, "d"))
    assert losing(network, real=("b", "d")) == {"alone"}
