"""What exists only inside a step of an INT8 device, and needs no scale."""

from __future__ import annotations

from tests.core.builder.networks import activation, add, chain, convolution, elu, image_network

from dryfit.network.data_types import DataType
from dryfit.quantization.int8_steps import real_tensors


def inside(network, without=()):
    return set(real_tensors([layer for layer in network.layers if layer.name not in without]))


def test_a_sum_of_products_and_the_relu_after_it_are_one_step():
    assert inside(chain("c", "r", "c", "e")) == {"c0"}


def test_a_relu_alone_ends_no_step_of_another_activation():
    assert inside(chain("e", "r")) == set()


def test_a_residual_joins_the_branch_that_is_ready_last():
    network, x = image_network()
    early, late = convolution(network, x, "early"), convolution(network, x, "late")
    network.mark_output(activation(network, add(network, late, early, "sum"), "relu"))
    assert inside(network) == {"late", "sum"}


def test_a_step_ends_where_a_second_layer_reads():
    network, x = image_network()
    a = convolution(network, x, "a")
    network.mark_output(add(network, activation(network, a, "relu"), elu(network, a, "elu"), "sum"))
    assert inside(network) == set()


def test_a_step_ends_at_a_network_output_and_where_the_user_asks_for_a_type():
    network = chain("c", "r")
    network.mark_output(network.tensor("c0"))
    assert inside(network) == set()
    typed = chain("c", "r")
    typed.layer("c0").set_output_type(0, DataType.INT8)
    assert inside(typed) == set()


def test_a_layer_that_is_not_computed_in_int8_ends_a_step():
    assert inside(chain("c", "r"), without=("c0",)) == set()


def test_a_sum_that_repeats_an_operand_is_a_step_of_its_own():
    network, x = image_network()
    row = network.add_input("row", DataType.FLOAT, (1, 8, 1, 1))
    network.mark_output(add(network, convolution(network, x, "a"), row, "sum"))
    assert inside(network) == set()
