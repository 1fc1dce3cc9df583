"""How a caller gives inputs and finds outputs is stated apart from how the network computes."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.builder.networks import chain, convolution, dla_config, fp16_config, image_network

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.trtexec_spellings import IoFormat
from dryfit.building import Builder
from dryfit.errors import NetworkError
from dryfit.network.copying import copy_network, io_type, with_network_types
from dryfit.network.data_types import DataType
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.network import Network
from dryfit.network.serialization import network_from_dict, network_to_dict
from dryfit.reference.executor import run_reference

FLOAT, HALF, INT8 = DataType.FLOAT, DataType.HALF, DataType.INT8
CONFIGS = {"GPU": fp16_config, "DLA": dla_config, "GPU in FP32": BuilderConfig}


def built_types(network: Network, config: BuilderConfig) -> tuple[DataType, DataType]:
    plan = Builder().build_plan(network, config)
    return plan.network.inputs[0].dtype, plan.network.outputs[0].dtype


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_an_input_given_in_half_leaves_the_output_in_the_networks_type(config):
    network = chain("c", "r")
    network.inputs[0].dtype = HALF
    assert built_types(network, config()) == (HALF, FLOAT)
    assert io_type(network.outputs[0]) is FLOAT


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_an_output_is_found_in_the_type_that_is_stated_for_it_and_nothing_else_changes(config):
    network = chain("c", "r")
    network.outputs[0].dtype = HALF
    assert built_types(network, config()) == (FLOAT, HALF)
    assert network.outputs[0].dtype is FLOAT


def test_it_does_not_matter_when_an_inputs_type_is_stated():
    network, x = image_network((1, 8, 6, 6))
    x.dtype = HALF
    network.mark_output(convolution(network, x, "c"))
    assert built_types(network, fp16_config()) == (HALF, FLOAT)


def test_a_network_that_was_made_in_half_gives_half():
    network = Network("half")
    x = network.add_input("x", HALF, (1, 4))
    network.mark_output(network.add_identity(x).get_output(0))
    assert built_types(network, fp16_config()) == (HALF, HALF)


def test_without_a_flag_an_input_given_in_half_is_computed_on_in_fp32():
    network = chain("c", "r")
    network.inputs[0].dtype = HALF
    plan = Builder().build_plan(network, BuilderConfig())
    assert {one.layer: one.precision for one in plan.layers} == {"c0": FLOAT, "r1": FLOAT}
    assert [(one.tensor, one.source, one.destination) for one in plan.reformats] == [
        ("x", "GPU HALF LINEAR", "GPU FLOAT LINEAR")
    ]


def test_the_numbers_are_those_of_the_network_with_a_conversion_at_its_border():
    values = np.linspace(-2, 2, 288, dtype=np.float16).reshape(1, 8, 6, 6)
    given = chain("c", "r")
    given.inputs[0].dtype = HALF
    given.outputs[0].dtype = HALF
    run = Builder().build_engine(given, BuilderConfig()).create_execution_context(1).run({"x": values})
    plain = Builder().build_engine(chain("c", "r"), BuilderConfig()).create_execution_context(1)
    (expected,) = plain.run({"x": values.astype(np.float32)}).values()
    (found,) = run.values()
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, expected.astype(np.float16))


def test_an_output_of_its_own_type_outweighs_the_one_of_its_layer():
    network = chain("c", "r")
    network.layers[-1].set_output_type(0, HALF)
    assert built_types(network, fp16_config())[1] is HALF
    network.outputs[0].dtype = FLOAT
    assert built_types(network, fp16_config())[1] is FLOAT


def test_an_output_in_int8_needs_a_scale():
    network = chain("c", "r")
    network.outputs[0].dtype = INT8
    with pytest.raises(NetworkError, match=r"'r1': FP32 requested as INT8.*set_dynamic_range"):
        Builder().build_plan(network, fp16_config())
    network.outputs[0].set_dynamic_range(-4.0, 4.0)
    context = Builder().build_engine(network, BuilderConfig()).create_execution_context(1)
    values = np.ones((1, 8, 6, 6), np.float32)
    network.outputs[0].io_dtype = None
    real = Builder().build_engine(network, BuilderConfig()).create_execution_context(1).run({"x": values})["r1"]
    expected = np.clip(np.rint(real / np.float32(4 / 127)), -128, 127)
    np.testing.assert_array_equal(context.run({"x": values})["r1"], expected.astype(np.int8))


def test_a_constant_output_is_given_in_the_stated_type_under_its_name():
    network = chain("c")
    constant = network.add_constant((2,), np.array([1.5, 2.5], np.float32)).get_output(0)
    network.mark_output(constant)
    constant.dtype = HALF
    context = Builder().build_engine(network, BuilderConfig()).create_execution_context(1)
    found = context.run({"x": np.zeros((1, 8, 6, 6), np.float32)})[constant.name]
    assert (found.dtype, found.tolist()) == (np.float16, [1.5, 2.5])


def test_a_tensor_between_layers_has_the_type_that_follows():
    network = chain("c", "r")
    with pytest.raises(NetworkError, match="determined by the layer and cannot be set"):
        network.tensor("c0").dtype = HALF


@pytest.mark.parametrize(("made", "stated"), [(DataType.INT32, HALF), (FLOAT, DataType.INT32)])
def test_types_that_do_not_stand_for_one_another_are_refused_for_outputs(made, stated):
    network = Network("copies")
    network.mark_output(network.add_identity(network.add_input("x", made, (4,))).get_output(0))
    with pytest.raises(NetworkError, match=f"found {stated.text}"):
        network.outputs[0].dtype = stated


def test_an_input_that_gets_its_own_type_again_has_no_other_any_more():
    network = chain("c")
    for dtype in (HALF, DataType.BF16, FLOAT):
        network.inputs[0].dtype = dtype
    assert with_network_types(network) is network


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
@pytest.mark.parametrize("is_stated_first", [False, True])
def test_an_input_given_in_half_meets_the_networks_float_constants(config, is_stated_first):
    network, x = image_network((1, 8, 6, 6))
    if is_stated_first:
        x.dtype = HALF
    bias = network.add_constant((1, 8, 1, 1), np.linspace(-1, 1, 8, dtype=np.float32).reshape(1, 8, 1, 1))
    network.mark_output(network.add_elementwise(x, bias.get_output(0), ElementWiseOperation.SUM).get_output(0))
    x.dtype = HALF
    assert built_types(network, config()) == (HALF, FLOAT)
    values = np.linspace(-2, 2, 288, dtype=np.float16).reshape(1, 8, 6, 6)
    (expected,) = run_reference(network, {"x": values}).values()
    (found,) = Builder().build_engine(network, config()).create_execution_context(1).run({"x": values}).values()
    assert found.dtype == expected.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-3)


@pytest.mark.parametrize("config", [BuilderConfig, fp16_config], ids=["FP32", "FP16"])
def test_an_input_given_in_int8_with_a_scale_meets_the_networks_float_constants(config):
    network, x = image_network((1, 8, 6, 6))
    bias = network.add_constant((1, 8, 1, 1), np.linspace(-1, 1, 8, dtype=np.float32).reshape(1, 8, 1, 1))
    network.mark_output(network.add_elementwise(x, bias.get_output(0), ElementWiseOperation.SUM).get_output(0))
    x.dtype = INT8
    x.set_dynamic_range(-2.0, 2.0)
    codes = np.linspace(-128, 127, 288).astype(np.int8).reshape(1, 8, 6, 6)
    (found,) = Builder().build_engine(network, config()).create_execution_context(1).run({"x": codes}).values()
    (expected,) = run_reference(network, {"x": codes * np.float32(2 / 127)}).values()
    np.testing.assert_allclose(found, expected, rtol=0, atol=3e-3)


def test_an_input_that_is_given_in_half_is_in_the_networks_type_for_its_layers():
    network = Network("typed", 0)
    x = network.add_input("x", FLOAT, (4,))
    x.dtype = HALF
    other = network.add_input("other", HALF, (4,))
    with pytest.raises(NetworkError, match="found FP32 and FP16"):
        network.add_concatenation([x, other])


@pytest.mark.parametrize("copied", [copy_network, lambda network: network_from_dict(*network_to_dict(network))])
def test_stated_types_go_with_copies_and_files(copied):
    network = chain("c")
    network.inputs[0].dtype = HALF
    network.outputs[0].dtype = DataType.BF16
    copy = copied(network)
    assert (copy.inputs[0].spec.dtype, copy.inputs[0].io_dtype) == (FLOAT, HALF)
    assert copy.outputs[0].io_dtype is DataType.BF16
    assert [str(IoFormat.of(one)) for one in (*copy.inputs, *copy.outputs)] == ["fp16:chw", "bf16:chw"]


@pytest.mark.parametrize(("name", "stated"), [("x", "INT64"), ("c0", "FP8"), ("c0_output0", "HALF")])
def test_a_file_with_types_that_stand_for_nothing_is_refused(name, stated):
    data, arrays = network_to_dict(chain("c"))
    data["io_types"] = {name: stated}
    with pytest.raises(NetworkError, match=f"io_types, {name!r}.*found {stated}"):
        network_from_dict(data, arrays)
