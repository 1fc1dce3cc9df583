import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.builder.designs import designed, lowered
from tests.core.builder.networks import (
    activation,
    add,
    chain,
    convolution,
    dla_config,
    elu,
    fp16_config,
    image_network,
    named,
    weights,
)

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.network.data_types import DataType
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.reference.executor import run_reference

FLOAT, HALF = DataType.FLOAT, DataType.HALF


def types(network):
    return {tensor.name: tensor.dtype for tensor in network.tensors}


def casts(network):
    return [layer.name for layer in network.layers if layer.kind == "cast"]


def test_inputs_and_outputs_keep_the_users_names_and_types():
    network = lowered(chain("c", "r"), fp16_config()).network
    assert [(tensor.name, tensor.dtype) for tensor in (*network.inputs, *network.outputs)] == [
        ("x", FLOAT),
        ("r1", FLOAT),
    ]
    assert types(network)["c0"] is HALF


def test_casts_and_their_tensors_are_named_as_tensorrt_names_reformats():
    result = lowered(chain("c", "r"), fp16_config())
    assert casts(result.network) == [
        "Reformatting CopyNode for Input Tensor 0 to c0",
        "Reformatting CopyNode for Output Tensor 0 to r1",
    ]
    assert result.reformats == set(casts(result.network))
    assert types(result.network)["Reformatted Input Tensor 0 to c0"] is HALF
    assert types(result.network)["Reformatted Output Tensor 0 to r1"] is HALF


def test_one_cast_serves_all_who_take_a_tensor_in_a_type():
    network, x = image_network()
    network.mark_output(add(network, convolution(network, x, "a"), convolution(network, x, "b"), "sum"))
    assert casts(lowered(network, fp16_config()).network)[:-1] == ["Reformatting CopyNode for Input Tensor 0 to a"]


def test_without_a_change_of_type_nothing_is_added():
    network = chain("c", "r", "e")
    result = lowered(network, BuilderConfig())
    assert [layer.name for layer in result.network.layers] == ["c0", "r1", "e2"]
    assert result.reformats == frozenset()


def test_constants_are_converted_once_and_stand_before_their_first_reader():
    network, x = image_network((1, 4))
    constant = named(network.add_constant((1, 4), np.array([[0.1, 1, 65504, 1e-9]], np.float32)), "k")
    first = named(network.add_elementwise(x, constant, ElementWiseOperation.SUM), "first")
    network.mark_output(named(network.add_elementwise(first, constant, ElementWiseOperation.SUM), "second"))
    result = lowered(network, fp16_config()).network
    constants = [layer for layer in result.layers if layer.kind == "constant"]
    assert [layer.name for layer in constants] == ["k [HALF]"]
    np.testing.assert_array_equal(constants[0].weights, constant.producer.weights.astype(np.float16))
    assert constants[0].index < result.layer("first").index
    assert network.layer("k").weights.dtype == np.float32


def test_a_constant_that_both_types_need_is_there_in_both():
    network, x = image_network((1, 4))
    constant = named(network.add_constant((1, 4), weights(1, 4)), "k")
    first = named(network.add_elementwise(x, constant, ElementWiseOperation.SUM), "first")
    network.mark_output(named(network.add_elementwise(first, constant, ElementWiseOperation.SUM), "second"))
    network.layer("second").precision = FLOAT
    result = lowered(network, fp16_config()).network
    assert {layer.name for layer in result.layers if layer.kind == "constant"} == {"k [HALF]", "k [FLOAT]"}


def test_a_type_that_the_user_asked_for_rounds_for_everyone():
    network = chain("r", "e")
    network.layer("r0").set_output_type(0, HALF)
    result = lowered(network, BuilderConfig()).network
    assert types(result)["r0"] is HALF
    assert result.layer("e1").inputs[0].dtype is FLOAT
    x = np.full((1, 8, 6, 6), 0.1, np.float32)
    output = run_reference(result, {"x": x})["e1"]
    np.testing.assert_array_equal(output, x.astype(np.float16).astype(np.float32))


def test_an_output_of_the_network_that_others_read_in_fp16_is_cast_for_the_user_only():
    network, x = image_network()
    first = convolution(network, x, "first")
    network.mark_output(first)
    network.mark_output(activation(network, first, "second"))
    result = lowered(network, fp16_config()).network
    assert types(result)["first"] is FLOAT
    assert result.layer("second").inputs[0].name == "Reformatted Output Tensor 0 to first"
    assert len(casts(result)) == 3


def test_an_output_type_of_a_network_output_is_what_the_user_gets():
    network = chain("c", "r")
    network.layer("r1").set_output_type(0, HALF)
    assert lowered(network, fp16_config()).network.outputs[0].dtype is HALF


def test_an_input_that_is_an_output_too_stays_as_it_is():
    network = chain("c")
    network.mark_output(network.inputs[0])
    result = lowered(network, fp16_config()).network
    assert [tensor.name for tensor in result.outputs] == ["c0", "x"]


def test_a_constant_output_keeps_its_type():
    network = chain("c")
    network.mark_output(named(network.add_constant((2,), weights(2)), "k"))
    result = lowered(network, fp16_config()).network
    assert [(tensor.name, tensor.dtype) for tensor in result.outputs] == [("c0", FLOAT), ("k", FLOAT)]


def test_layers_come_in_the_order_of_segments():
    network, x = image_network()
    first = convolution(network, x, "first")
    on_gpu = elu(network, first, "on_gpu")
    beside = activation(network, first, "beside")
    network.mark_output(add(network, on_gpu, beside, "sum"))
    result = lowered(network, dla_config()).network
    order = [layer.name for layer in result.layers if layer.kind != "cast"]
    assert order == ["first", "beside", "on_gpu", "sum"]


def test_names_that_the_user_took_are_not_taken_again():
    network, x = image_network()
    network.mark_output(convolution(network, activation(network, x, "Reformatted Input Tensor 0 to a"), "a"))
    network.layer("Reformatted Input Tensor 0 to a").precision = FLOAT
    result = lowered(network, fp16_config()).network
    assert result.layer("a").inputs[0].name == "Reformatted Input Tensor 0 to a_1"


def test_dynamic_dimensions_and_their_names_are_kept():
    network, x = image_network((-1, 4, 4, 4))
    x.set_dimension_name(0, "batch")
    network.mark_output(activation(network, x, "relu"))
    result = lowered(network, fp16_config()).network
    assert result.inputs[0].shape == (-1, 4, 4, 4)
    assert result.inputs[0].get_dimension_name(0) == "batch"


@pytest.mark.parametrize("config", [fp16_config(), dla_config(), BuilderConfig()], ids=["gpu", "dla", "fp32"])
def test_every_tensor_that_carries_data_knows_where_it_comes_from(config):
    network = chain("c", "e", "r")
    design, result = designed(network, config), lowered(network, config)
    names = {tensor.name for tensor in design.network.tensors}
    for tensor in result.network.tensors:
        origin, dtype = result.origins[tensor.name]
        assert origin in names
        assert dtype is tensor.dtype


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from("cre"), min_size=1, max_size=6), st.booleans(), st.data())
def test_the_engines_network_computes_what_the_users_does_up_to_fp16(kinds, on_dla, data):
    network = chain(*kinds)
    for layer in network.layers:
        if data.draw(st.booleans()):
            layer.precision = data.draw(st.sampled_from([FLOAT, HALF]))
    result = lowered(network, dla_config() if on_dla else fp16_config()).network
    x = weights(1, 8, 6, 6, seed=3)
    expected, found = run_reference(network, {"x": x}), run_reference(result, {"x": x})
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        # Each layer rounds once, to a relative 2**-11; six convolutions of 72 terms each.
        np.testing.assert_allclose(found[name], array, atol=0.02 * np.abs(array).max() + 1e-6)
