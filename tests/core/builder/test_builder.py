import numpy as np
import pytest
from tests.core.builder.networks import (
    activation,
    add,
    chain,
    convolution,
    dla_config,
    elu,
    fp16_config,
    half_network,
    image_network,
    weights,
)

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.building import Builder
from dryfit.engine.engine import Engine
from dryfit.engine.plan_check import check_plan
from dryfit.errors import BuildError, ConfigError, NetworkError, PlacementError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.network.packed_elements import is_stand_in
from dryfit.reference.executor import run_reference


def residual_network():
    network, x = image_network((2, 8, 9, 9), name="residual")
    skip = activation(network, x, "skip")
    body = elu(network, convolution(network, skip, "body"), "elu")
    network.mark_output(activation(network, add(network, convolution(network, body, "end"), skip, "sum"), "out"))
    return network


@pytest.mark.parametrize(
    ("config", "tolerance"),
    [(BuilderConfig(), 1e-5), (fp16_config(), 5e-3), (dla_config(), 5e-3)],
    ids=["gpu fp32", "gpu fp16", "dla fp16"],
)
def test_an_engine_computes_what_the_network_means(config, tolerance):
    network = residual_network()
    x = weights(2, 8, 9, 9, seed=1)
    expected = run_reference(network, {"x": x})["out"]
    found = Builder().build_engine(network, config).create_execution_context().run({"x": x})["out"]
    np.testing.assert_allclose(found, expected, atol=tolerance * np.abs(expected).max())


def test_a_plan_fits_together_and_holds_every_layer_once():
    network = residual_network()
    plan = Builder().build_plan(network, dla_config())
    check_plan(plan)
    sources = [name for operation in plan.operations for name in operation.source_layers]
    assert sorted(sources) == sorted(layer.name for layer in network.layers)
    assert [segment.device for segment in plan.segments] == ["DLA", "GPU", "DLA"]
    assert all(0 <= operation.segment < 3 for operation in plan.operations if operation.source_layers)
    assert {operation.device for operation in plan.operations if not operation.source_layers} == {"GPU"}


def test_operations_keep_the_names_of_onnx_nodes():
    network = chain("c", "r")
    network.layer("c0").onnx_nodes = ("Conv_0", "BatchNormalization_1")
    network.layer("r1").onnx_nodes = ("Relu_2",)
    (operation,) = Builder().build_plan(network, BuilderConfig()).operations
    assert operation.name == "c0 + r1"
    assert operation.onnx_nodes == ["Conv_0", "BatchNormalization_1", "Relu_2"]


def test_parameters_that_were_packed_are_not_kept_twice_and_the_users_stay():
    network = chain("c")
    plan = Builder().build_plan(network, BuilderConfig())
    (operation,) = plan.operations
    assert operation.weights
    assert is_stand_in(plan.network.layer("c0").kernel)
    assert not is_stand_in(network.layer("c0").kernel)


def test_the_same_network_and_config_give_the_same_bytes():
    first, second = (Builder().build_serialized_network(residual_network(), dla_config()) for _ in range(2))
    assert first == second


def test_an_engine_remembers_what_it_was_built_with():
    network = chain("c", "e")
    config = dla_config()
    config.set_device_type(network.layer("c0"), "GPU")
    plan = Builder().build_plan(network, config)
    assert plan.settings["device_types"] == {"c0": "GPU"}
    assert plan.settings["platforms"]["DLA"] == "agx-orin-64"
    assert any(plugin.startswith("dla") for plugin in plan.plugins)
    assert [layer.device for layer in plan.layers] == ["GPU", "GPU"]


def test_a_network_without_a_place_is_refused_with_all_reasons():
    with pytest.raises(PlacementError) as caught:
        Builder().build_plan(chain("e", "c", "e"), dla_config(fallback=False))
    text = str(caught.value)
    assert "2 layers cannot run on DLA and fallback is disabled" in text
    assert "'e0' cannot run on DLA" in text
    assert "'e2' cannot run on DLA" in text
    assert "'c1'" not in text
    assert "GPU_FALLBACK" in text


def test_without_fallback_the_borders_have_to_be_the_devices_own():
    network = half_network()
    with pytest.raises(BuildError, match="CHW16, DLA_LINEAR"):
        Builder().build_plan(network, dla_config(fallback=False))
    for tensor in (network.inputs[0], network.outputs[0]):
        tensor.allowed_formats = frozenset({"DLA_LINEAR"})
    engine = Builder().build_engine(network, dla_config(fallback=False))
    x = weights(1, 8, 6, 6).astype(np.float16)
    found = engine.create_execution_context().run({"x": x})["r1"]
    expected = run_reference(network, {"x": x})["r1"]
    np.testing.assert_allclose(found.astype(np.float32), expected.astype(np.float32), rtol=2e-3, atol=2e-3)
    assert engine.plan.placements["x"].format == "DLA_LINEAR"


def test_a_copy_that_direct_io_forbids_is_an_error():
    network = half_network()
    network.inputs[0].allowed_formats = frozenset({"LINEAR"})
    config = dla_config()
    config.set_flag(BuilderFlag.DIRECT_IO)
    with pytest.raises(BuildError, match="FP16 in CHW16, DLA_LINEAR, DLA_HWC4 there"):
        Builder().build_plan(network, config)


def test_a_wrong_network_is_refused_before_anything_else():
    with pytest.raises(NetworkError):
        Builder().build_plan(Network("empty"), BuilderConfig())


def test_a_dynamic_network_needs_a_profile():
    network, x = image_network((-1, 8, 6, 6))
    network.mark_output(elu(network, x, "elu"))
    with pytest.raises(ConfigError, match="optimization profile"):
        Builder().build_plan(network, BuilderConfig())


def test_scales_that_were_only_assumed_build_no_engine():
    config = dla_config()
    config.set_flag(BuilderFlag.INT8)
    config.assume_scales = True
    with pytest.raises(
        BuildError,
        match=r"Tensors of INT8 layers must have scales; assume_scales is for assessment only[\s\S]*'x', 'r1'",
    ):
        Builder().build_plan(chain("c", "r"), config)


def test_constraints_that_must_be_obeyed_and_cannot_are_an_error():
    network = chain("c")
    network.layer("c0").precision = DataType.DOUBLE
    config = fp16_config()
    config.set_flag(BuilderFlag.OBEY_PRECISION_CONSTRAINTS)
    with pytest.raises(BuildError, match="'c0' asks for precision FP64"):
        Builder().build_plan(network, config)


def test_a_builder_says_whether_a_network_is_supported():
    builder = Builder()
    assert builder.is_network_supported(chain("c", "e"), dla_config())
    assert not builder.is_network_supported(chain("c", "e"), dla_config(fallback=False))
    assert not builder.is_network_supported(Network("empty"), BuilderConfig())


def test_a_builder_makes_what_a_build_needs():
    builder = Builder()
    network, config = builder.create_network(), builder.create_builder_config()
    x = network.add_input("x", DataType.FLOAT, (-1, 4))
    network.mark_output(elu(network, x, "elu"))
    profile = builder.create_optimization_profile()
    profile.set_shape("x", (1, 4), (2, 4), (3, 4))
    config.add_optimization_profile(profile)
    engine = builder.build_engine_with_config(network, config)
    assert isinstance(engine, Engine)
    assert engine.create_execution_context().run({"x": np.zeros((3, 4), np.float32)})["elu"].shape == (3, 4)


@pytest.mark.parametrize(("platform", "cores"), [("agx-orin-64", 2), ("orin-nx-8", 1), ("orin-nano", 0)])
def test_a_builder_speaks_of_the_platform_that_was_chosen(platform, cores):
    builder = Builder()
    builder.set_platform("dla", platform)
    assert builder.num_DLA_cores == cores
    assert builder.create_builder_config().platform("DLA").name == platform
    builder.reset()
    assert builder.num_DLA_cores == 2


def test_a_platform_that_does_not_exist_is_refused():
    with pytest.raises(UnknownNameError):
        Builder().set_platform("DLA", "agx-orin-65")


def test_the_largest_batch_of_the_dla_is_that_of_its_rule():
    assert Builder().max_DLA_batch_size == 4096


def test_a_builder_tells_what_the_gpu_is_good_at():
    builder = Builder()
    assert builder.platform_has_fast_fp16
    assert builder.platform_has_fast_int8
    assert not builder.platform_has_tf32


def test_a_network_that_was_built_can_be_changed_and_built_again():
    network = chain("c", "r")
    first = Builder().build_plan(network, BuilderConfig())
    network.unmark_output(network.outputs[0])
    network.mark_output(network.tensor("c0"))
    second = Builder().build_plan(network, BuilderConfig())
    assert [tensor.name for tensor in first.network.outputs] == ["r1"]
    assert [tensor.name for tensor in second.network.outputs] == ["c0"]


def test_layers_that_fail_the_same_rules_are_refused_in_few_lines():
    with pytest.raises(PlacementError) as caught:
        Builder().build_plan(chain(*["e"] * 30), dla_config(fallback=False))
    text = str(caught.value)
    assert "30 layers cannot run on DLA" in text
    assert "likewise 'e1', 'e2' and 27 more" in text
    assert text.count("cannot run on DLA:") == 1
