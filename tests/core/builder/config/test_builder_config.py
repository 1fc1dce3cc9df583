import gc
import json

import numpy as np
import pytest

from dryfit.builder.config.builder_config import (
    BuilderConfig,
    BuilderFlag,
    DeviceType,
    EngineCapability,
    MemoryPoolType,
    ProfilingVerbosity,
)
from dryfit.builder.config.optimization_profile import OptimizationProfile
from dryfit.errors import ConfigError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import Activation, ActivationType
from dryfit.network.network import Network
from dryfit.target.verdict import Verdict


def small_network(shape=(1, 8, 8, 8)):
    network = Network("small")
    x = network.add_input("x", DataType.FLOAT, shape)
    convolution = network.add_convolution_nd(x, 4, (3, 3), np.zeros((4, shape[1], 3, 3), np.float32))
    relu = network.add_activation(convolution.get_output(0), ActivationType.RELU)
    elu = network.add_activation(relu.get_output(0), ActivationType.ELU)
    network.mark_output(elu.get_output(0))
    return network, convolution, relu, elu


def fp16():
    config = BuilderConfig()
    config.set_flag(BuilderFlag.FP16)
    return config


# Devices of layers


def test_a_new_config_puts_every_layer_on_the_gpu():
    _, convolution, *_ = small_network()
    config = BuilderConfig()
    assert config.default_device_type == DeviceType.GPU
    assert config.get_device_type(convolution) == "GPU"
    assert not config.is_device_type_set(convolution)
    assert config.fallback_device is None


def test_a_layers_own_device_wins_over_the_default():
    _, convolution, relu, _ = small_network()
    config = BuilderConfig()
    config.default_device_type = DeviceType.DLA
    config.set_device_type(convolution, DeviceType.GPU)
    assert (config.get_device_type(convolution), config.get_device_type(relu)) == ("GPU", "DLA")
    assert (config.is_device_type_set(convolution), config.is_device_type_set(relu)) == (True, False)


def test_the_device_of_a_layer_is_its_own_even_where_it_cannot_run():
    *_, elu = small_network()
    config = fp16()
    config.set_device_type(elu, "DLA")
    assert config.get_device_type(elu) == "DLA"
    assert not config.can_run_on_DLA(elu)


def test_reset_of_a_layer_returns_to_the_default_of_now():
    _, convolution, *_ = small_network()
    config = BuilderConfig()
    config.set_device_type(convolution, "DLA")
    config.reset_device_type(convolution)
    assert config.get_device_type(convolution) == "GPU"
    config.default_device_type = "DLA"
    assert config.get_device_type(convolution) == "DLA"
    config.reset_device_type(convolution)


def test_device_names_are_taken_in_any_case_and_unknown_ones_refused():
    _, convolution, *_ = small_network()
    config = BuilderConfig()
    config.set_device_type(convolution, "dla")
    assert config.get_device_type(convolution) == DeviceType.DLA
    with pytest.raises(UnknownNameError, match="Unknown device: 'DLX'") as error:
        config.set_device_type(convolution, "DLX")
    assert error.value.remedy == "Did you mean 'DLA'?"
    with pytest.raises(UnknownNameError):
        config.default_device_type = "TPU"
    assert config.default_device_type == "GPU"


def test_layers_are_told_apart_by_identity_not_by_name():
    _, first, *_ = small_network()
    _, second, *_ = small_network()
    assert first.name == second.name
    config = BuilderConfig()
    config.set_device_type(first, "DLA")
    assert config.is_device_type_set(first)
    assert not config.is_device_type_set(second)


def test_the_explicit_devices_of_a_network_are_listed_in_its_order():
    network, convolution, _, elu = small_network()
    other, foreign, *_ = small_network()
    config = BuilderConfig()
    for layer in (elu, foreign, convolution):
        config.set_device_type(layer, "DLA")
    assert list(config.explicit_device_types(network).items()) == [(convolution.name, "DLA"), (elu.name, "DLA")]
    assert config.explicit_device_types(other) == {foreign.name: "DLA"}


def test_a_config_does_not_keep_a_network_alive():
    config = BuilderConfig()

    def use():
        _, convolution, *_ = small_network()
        config.set_device_type(convolution, "DLA")

    use()
    gc.collect()
    assert len(config._device_types) == 0


def test_a_layer_outside_a_network_is_refused():
    layer = Activation(name="loose", activation_type=ActivationType.RELU)
    for ask in (
        lambda: BuilderConfig().set_device_type(layer, "DLA"),
        lambda: BuilderConfig().can_run_on(layer, "DLA"),
    ):
        with pytest.raises(ConfigError, match="The layer must belong to a network") as error:
            ask()
        assert error.value.where == "layer 'loose'"


# Verdicts


def test_can_run_on_answers_for_any_device():
    _, convolution, _, elu = small_network()
    config = fp16()
    for device in ("DLA", "GPU", "CPU"):
        answer = config.can_run_on(convolution, device)
        assert isinstance(answer, Verdict)
        assert answer.supported
        assert answer.device == device
    refused = config.can_run_on(elu, "dla")
    assert not refused
    assert [one.rule for one in refused.violations] == ["dla.activation.type"]
    assert (config.can_run_on_DLA(convolution), config.can_run_on_DLA(elu)) == (True, False)
    with pytest.raises(UnknownNameError):
        config.can_run_on(convolution, "TPU")


def test_the_answer_follows_the_layer_as_it_stands_now():
    _, convolution, *_ = small_network((1, 8, 64, 64))
    config = fp16()
    assert config.can_run_on_DLA(convolution)
    convolution.dilation_nd = (31, 31)
    assert config.can_run_on_DLA(convolution)
    convolution.stride_nd = (9, 9)
    assert not config.can_run_on_DLA(convolution)


def test_the_answer_names_platform_and_software():
    _, convolution, *_ = small_network()
    config = fp16()
    config.set_platform("DLA", "xavier-nx")
    config.set_software("DLA", "8.4")
    answer = config.can_run_on(convolution, "DLA")
    assert (answer.platform, answer.software) == ("xavier-nx", "8.4")


def test_the_question_is_asked_in_the_layers_own_precision_first():
    from dryfit.plugins import registry

    _, convolution, relu, _ = small_network()
    config = fp16()
    config.set_flag(BuilderFlag.INT8)
    convolution.precision = DataType.FLOAT
    assert config.question(convolution, registry.target("DLA")).precision is DataType.FLOAT
    assert config.question(relu, registry.target("DLA")).precision is DataType.HALF
    for tensor in (relu.get_input(0), relu.get_output(0)):
        tensor.set_dynamic_range(-1, 1)
    assert config.question(relu, registry.target("DLA")).precision is DataType.INT8
    assert config.question(relu, registry.target("CPU")).precision is DataType.INT8
    assert BuilderConfig().question(relu, registry.target("GPU")).precision is DataType.FLOAT


# Fallback


def test_fallback_to_the_gpu_is_a_flag():
    config = BuilderConfig()
    config.set_flag(BuilderFlag.GPU_FALLBACK)
    assert config.fallback_device == "GPU"
    config.allow_gpu_fallback(False)
    assert config.fallback_device is None
    assert not config.get_flag(BuilderFlag.GPU_FALLBACK)
    config.allow_gpu_fallback(True)
    assert config.get_flag(BuilderFlag.GPU_FALLBACK)


def test_fallback_may_go_to_any_device_or_to_none():
    config = BuilderConfig()
    config.allow_fallback("gpu")
    assert config.get_flag(BuilderFlag.GPU_FALLBACK)
    config.allow_fallback("cpu")
    assert (config.fallback_device, config.get_flag(BuilderFlag.GPU_FALLBACK)) == ("CPU", False)
    config.allow_fallback(None)
    assert config.fallback_device is None
    with pytest.raises(UnknownNameError):
        config.allow_fallback("TPU")


# Flags


def test_flags_are_single_switches_and_one_mask():
    config = BuilderConfig()
    assert config.flags == 1 << BuilderFlag.TF32
    config.set_flag(BuilderFlag.FP16)
    config.clear_flag(BuilderFlag.TF32)
    assert (config.flags, config.get_flag(BuilderFlag.FP16)) == (1, True)
    config.flags = 1 << int(BuilderFlag.INT8) | 1 << int(BuilderFlag.GPU_FALLBACK)
    assert config.get_flag(BuilderFlag.INT8)
    assert not config.get_flag(BuilderFlag.FP16)
    with pytest.raises(ConfigError, match=rf"bits that are not builder flags.*found {bin(1 << 40)}"):
        config.flags = 1 << 40


def test_the_numbers_of_the_flags_are_those_of_version_10():
    assert (BuilderFlag.FP16, BuilderFlag.INT8, BuilderFlag.GPU_FALLBACK, BuilderFlag.DIRECT_IO) == (0, 1, 3, 11)
    assert BuilderFlag.WEIGHTLESS is BuilderFlag.STRIP_PLAN
    assert len(BuilderFlag) == 29


# The device's variant


def test_the_first_platform_and_its_newest_software_are_the_default():
    config = BuilderConfig()
    assert config.platform("DLA").name == "agx-orin-64"
    assert config.software("DLA") == (10, 16)
    config.set_platform("dla", "Xavier")
    assert config.platform("DLA").name == "agx-xavier"
    assert config.software("DLA") == (8, 5, 10)


def test_a_platform_that_does_not_exist_is_refused():
    with pytest.raises(UnknownNameError, match="DLA platform: 'agx-orin-46'") as error:
        BuilderConfig().set_platform("DLA", "agx-orin-46")
    assert error.value.remedy == "Did you mean 'agx-orin-64'?"


def test_software_that_the_platform_lacks_is_refused_when_it_is_used():
    config = BuilderConfig()
    config.set_software("DLA", "10.3")
    assert config.software("DLA") == (10, 3)
    config.set_platform("DLA", "xavier")
    with pytest.raises(ConfigError, match="no rules for this software version") as error:
        config.software("DLA")
    assert error.value.found == "10.3"


def test_malformed_software_is_refused_at_once():
    with pytest.raises(ConfigError, match="numbers with dots"):
        BuilderConfig().set_software("DLA", "newest")


def test_the_core_is_one_that_the_platform_has():
    config = BuilderConfig()
    assert config.DLA_core == -1
    config.DLA_core = 1
    assert config.DLA_core == 1
    for platform, core, allowed in (
        ("orin", 2, "0 to 1, or -1 for none"),
        ("orin-nx-8", 1, "0 to 0, or -1 for none"),
        ("orin-nano", 0, "-1 (no DLA)"),
    ):
        config.set_platform("DLA", platform)
        with pytest.raises(ConfigError, match="The DLA core is out of range") as error:
            config.DLA_core = core
        assert (error.value.found, error.value.allowed) == (core, allowed)


# Memory pools


def test_pool_limits_have_the_platforms_defaults():
    config = BuilderConfig()
    assert config.get_memory_pool_limit(MemoryPoolType.DLA_MANAGED_SRAM) == 512 << 10
    assert config.get_memory_pool_limit("dla_local_dram") == 1 << 30
    assert config.get_memory_pool_limit(MemoryPoolType.DLA_GLOBAL_DRAM) == 512 << 20
    assert config.get_memory_pool_limit(MemoryPoolType.WORKSPACE) is None
    config.set_platform("DLA", "xavier")
    assert config.get_memory_pool_limit("DLA_MANAGED_SRAM") == 1 << 20


def test_a_pool_limit_that_was_set_stays():
    config = BuilderConfig()
    config.set_memory_pool_limit("DLA_MANAGED_SRAM", 1 << 20)
    config.set_platform("DLA", "orin-nx-8")
    assert config.get_memory_pool_limit("DLA_MANAGED_SRAM") == 1 << 20


@pytest.mark.parametrize("size", [4096, 1 << 20, 1 << 30])
def test_dla_pools_are_powers_of_two_from_4_kib(size):
    BuilderConfig().set_memory_pool_limit("DLA_LOCAL_DRAM", size)


@pytest.mark.parametrize("size", [0, -4096, 2048, 4095, 4097, 3 << 20])
def test_other_sizes_are_refused_with_the_rule(size):
    with pytest.raises(ConfigError, match="memory pool limit") as error:
        BuilderConfig().set_memory_pool_limit("DLA_LOCAL_DRAM", size)
    assert error.value.found == f"{size} bytes"
    assert error.value.allowed == "a power of two of at least 4096 bytes"
    assert "Memory Pools" in error.value.source


def test_an_unknown_pool_is_refused():
    with pytest.raises(UnknownNameError, match="memory pool: 'DLA_SRAM'"):
        BuilderConfig().set_memory_pool_limit("DLA_SRAM", 4096)


# Profiles and the rest


def test_profiles_are_numbered():
    config = BuilderConfig()
    profile = OptimizationProfile()
    with pytest.raises(ConfigError, match="An optimization profile must have shapes"):
        config.add_optimization_profile(profile)
    profile.set_shape("x", (1,), (2,), (3,))
    assert config.add_optimization_profile(profile) == 0
    assert (config.num_optimization_profiles, config.get_optimization_profile(0)) == (1, profile)
    with pytest.raises(ConfigError, match="The optimization profile index is out of range") as error:
        config.get_optimization_profile(1)
    assert error.value.allowed == "0 to 0"


def test_the_optimization_level_is_0_to_5():
    config = BuilderConfig()
    assert config.builder_optimization_level == 3
    config.builder_optimization_level = 5
    with pytest.raises(ConfigError, match="optimization level"):
        config.builder_optimization_level = 6


def test_reset_returns_to_a_new_config():
    network, convolution, *_ = small_network()
    config = fp16()
    config.default_device_type = "DLA"
    config.set_device_type(convolution, "DLA")
    config.allow_fallback("CPU")
    config.set_platform("DLA", "xavier")
    config.set_software("DLA", "8.4")
    config.DLA_core = 1
    config.engine_capability = EngineCapability.DLA_STANDALONE
    config.set_memory_pool_limit("DLA_LOCAL_DRAM", 4096)
    config.profiling_verbosity = ProfilingVerbosity.DETAILED
    config.builder_optimization_level = 0
    config.assume_scales = True
    config.progress_monitor = object()
    assert config.settings(network) != BuilderConfig().settings(network)
    config.reset()
    assert config.settings(network) == BuilderConfig().settings(network)
    assert config.progress_monitor is None
    assert config.get_device_type(convolution) == "GPU"
    assert not config.is_device_type_set(convolution)


def test_settings_are_plain_and_do_not_depend_on_the_order_of_calls():
    network, convolution, relu, _ = small_network()
    made = []
    for order in (1, -1):
        config = BuilderConfig()
        for flag in (BuilderFlag.FP16, BuilderFlag.GPU_FALLBACK)[::order]:
            config.set_flag(flag)
        for layer in (convolution, relu)[::order]:
            config.set_device_type(layer, "DLA")
        for pool in ("DLA_LOCAL_DRAM", "DLA_GLOBAL_DRAM")[::order]:
            config.set_memory_pool_limit(pool, 4096)
        made.append(json.dumps(config.settings(network)))
    assert made[0] == made[1]
    settings = json.loads(made[0])
    assert settings["flags"] == ["FP16", "GPU_FALLBACK", "TF32"]
    assert settings["fallback_device"] == "GPU"
    assert settings["device_types"] == {convolution.name: "DLA", relu.name: "DLA"}
    assert settings["platforms"]["DLA"] == "agx-orin-64"
    assert settings["software"]["DLA"] == "10.16"
    assert settings["memory_pool_limits"] == {"DLA_GLOBAL_DRAM": 4096, "DLA_LOCAL_DRAM": 4096}


def test_profiles_are_in_the_settings():
    config = BuilderConfig()
    profile = OptimizationProfile()
    profile.set_shape("x", (1, 3), (2, 3), (4, 3))
    config.add_optimization_profile(profile)
    assert config.settings()["optimization_profiles"] == [
        {"shapes": {"x": [[1, 3], [2, 3], [4, 3]]}, "shape_values": {}}
    ]


def test_the_shapes_of_a_profile_are_inferred_again_when_the_network_or_the_profile_changes():
    network, convolution, relu, _ = small_network((-1, 8, 8, 8))
    config = fp16()
    assert "dla.dynamic_dimensions" in {one.rule for one in config.can_run_on(relu, "DLA").violations}
    profile = OptimizationProfile()
    profile.set_shape("x", *[(4, 8, 8, 8)] * 3)
    config.add_optimization_profile(profile)
    assert config.can_run_on(relu, "DLA")
    profile.set_shape("x", *[(5000, 8, 8, 8)] * 3)
    assert "dla.batch" in {one.rule for one in config.can_run_on(relu, "DLA").violations}
    profile.set_shape("x", *[(4, 8, 8, 8)] * 3)
    assert config.can_run_on(relu, "DLA")
    convolution.padding_nd = (5000, 5000)
    assert "dla.extents" in {one.rule for one in config.can_run_on(relu, "DLA").violations}
    added = network.add_activation(convolution.get_output(0), ActivationType.RELU)
    assert "dla.extents" in {one.rule for one in config.can_run_on(added, "DLA").violations}
