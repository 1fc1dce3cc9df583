"""INT8 inputs stand for real numbers, or are plain integers that meet other integers."""

import numpy as np
import pytest
from tests.core.builder.networks import chain, dla_config

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.building import Builder, assess
from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.network import Network
from dryfit.quantization.integer_inputs import integer_inputs
from dryfit.reference.executor import run_reference

INT8 = DataType.INT8


def added(network, x, y, name):
    layer = network.add_elementwise(x, y, ElementWiseOperation.SUM)
    network.rename_tensor(layer.get_output(0), name)
    return layer.get_output(0)


def integers():
    """x + 3 and y + z, of INT8 inputs."""
    network = Network("integers")
    x, y, z = (network.add_input(name, INT8, (1, 4)) for name in "xyz")
    three = network.add_constant((1, 4), np.full((1, 4), 3, np.int8)).get_output(0)
    network.mark_output(added(network, x, three, "x3"))
    network.mark_output(added(network, y, z, "yz"))
    return network


def int8_config():
    config = BuilderConfig()
    config.set_flag(BuilderFlag.INT8)
    return config


def test_an_input_that_meets_an_integer_constant_is_an_integer():
    assert integer_inputs(integers()) == ["y", "z"]


def test_what_meets_an_integer_later_or_beside_one_that_does_is_an_integer_too():
    network = integers()
    w = network.add_input("w", INT8, (1, 4))
    network.mark_output(added(network, network.tensor("yz"), added(network, network.tensor("x3"), w, "x3w"), "all"))
    assert integer_inputs(network) == []


def test_an_input_that_is_dequantized_is_none_whose_range_is_to_be_found():
    network = Network("explicit")
    x = network.add_input("x", INT8, (1, 4))
    network.mark_output(
        network.add_dequantize(x, network.add_constant((), np.float32(0.5)).get_output(0)).get_output(0)
    )
    assert integer_inputs(network) == []


def test_real_weights_do_not_make_an_input_an_integer():
    network = Network("implicit")
    x = network.add_input("x", INT8, (1, 4, 3, 3))
    layer = network.add_convolution_nd(x, 2, (1, 1), np.ones((2, 4, 1, 1), np.float32))
    network.mark_output(layer.get_output(0))
    assert integer_inputs(network) == ["x"]


def test_integer_arithmetic_is_built_with_the_flag_int8_and_computes_integers():
    feeds = {name: np.array([[1, -2, 100, -128]], np.int8) for name in "xyz"}
    found = Builder().build_engine(integers(), int8_config()).create_execution_context().run(feeds)
    for name, expected in run_reference(integers(), feeds).items():
        assert found[name].dtype == np.int8
        np.testing.assert_array_equal(found[name], expected)


@pytest.mark.parametrize("config", [BuilderConfig(), int8_config()], ids=["no flag", "INT8"])
@pytest.mark.parametrize(
    ("name", "words"),
    [("x", "found '(Unnamed Layer* 0) [Constant]_output', which layer"), ("y", "found 'z', which layer")],
)
def test_a_range_on_an_input_that_meets_integers_is_refused_with_the_meeting(config, name, words):
    network = integers()
    network.tensor(name).dynamic_range = (-1, 1)
    with pytest.raises(
        NetworkError, match="An INT8 input with a scale must not be combined with unscaled integers"
    ) as caught:
        Builder().build_plan(network, config)
    assert caught.value.where == f"input {name!r}"
    assert words in str(caught.value)


def test_types_of_several_inputs_can_be_changed_one_after_the_other():
    network = Network("two")
    x, y = (network.add_input(name, INT8, (1, 4)) for name in "xy")
    network.mark_output(added(network, x, y, "sum"))
    for tensor in (x, y):
        tensor.dtype = DataType.FLOAT
    assert network.outputs[0].dtype is DataType.FLOAT


def codes_for_real_numbers(*kinds):
    network = chain(*kinds)
    network.inputs[0].dtype = INT8
    return network


@pytest.mark.parametrize(
    ("network", "config", "words"),
    [
        (chain("c", "r", "c", dtype=INT8), dla_config(), "with `kernel`, which is real"),
        (chain("c", dtype=INT8), int8_config(), "with `kernel`, which is real"),
        (chain("e", "c", dtype=INT8), BuilderConfig(), "layer 'c1'"),
        (chain("r", dtype=INT8), dla_config(), "on a device without integer arithmetic"),
        (codes_for_real_numbers("r"), BuilderConfig(), "the network, which computes in floating point there"),
    ],
    ids=["weights on DLA", "weights with the flag", "weights later", "no weights on DLA", "a network of real numbers"],
)
def test_codes_without_a_scale_are_refused_where_only_real_numbers_can_be_meant(network, config, words):
    with pytest.raises(NetworkError, match="An INT8 input used as a floating-point value must have a scale") as caught:
        Builder().build_plan(network, config)
    assert caught.value.where == "input 'x'"
    assert words in str(caught.value)
    assert "dynamic range" in str(caught.value)
    assert "flag INT8" in str(caught.value)


def test_codes_with_a_dynamic_range_stand_for_real_numbers_on_the_dla():
    network = codes_for_real_numbers("c", "r")
    network.inputs[0].dynamic_range = (-1, 1)
    found = assess(network, dla_config())
    assert found.can_be_built
    assert {one.precision for one in found.layers} == {DataType.HALF}


def test_where_scales_are_assumed_codes_are_taken_to_have_one():
    network, config = codes_for_real_numbers("c", "r"), dla_config()
    config.set_flag(BuilderFlag.INT8)
    config.assume_scales = True
    copied = [(one.tensor, one.source, one.destination) for one in assess(network, config).reformats]
    assert copied[-1] == ("r1", "DLA INT8 CHW32", "GPU FLOAT LINEAR")
