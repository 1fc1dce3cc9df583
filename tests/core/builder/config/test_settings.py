"""A config from the settings of an engine: it decides as the one that wrote them."""

from __future__ import annotations

import json

import pytest
from tests.core.builder.networks import activation, image_network

from dryfit.builder.config.builder_config import (
    BuilderConfig,
    BuilderFlag,
    EngineCapability,
    MemoryPoolType,
    ProfilingVerbosity,
)
from dryfit.builder.config.enumerations import QuantizationFlag
from dryfit.builder.config.optimization_profile import OptimizationProfile
from dryfit.builder.config.settings import config_from_settings
from dryfit.errors import EngineFileError
from dryfit.network.network import Network


def network_and_config() -> tuple[Network, BuilderConfig]:
    """A config in which every setting has another value than in a new one."""
    network, x = image_network()
    network.mark_output(activation(network, x, "relu"))
    config = BuilderConfig()
    config.flags = sum(1 << flag for flag in (BuilderFlag.FP16, BuilderFlag.INT8, BuilderFlag.REFIT))
    config.set_quantization_flag(QuantizationFlag.CALIBRATE_BEFORE_FUSION)
    config.default_device_type = "DLA"
    config.allow_fallback("CPU")
    config.set_device_type(network.layer("relu"), "GPU")
    config.set_kernel(network.layer("relu"), "cpu.activation")
    config.forbid_kernels("cpu.winograd_*")
    config.set_platform("DLA", "xavier-nx")
    config.set_software("DLA", "8.5")
    config.power_mode = "10W"
    config.DLA_core = 1
    config.engine_capability = EngineCapability.SAFETY
    config.set_memory_pool_limit(MemoryPoolType.DLA_MANAGED_SRAM, 1 << 18)
    profile = OptimizationProfile()
    profile.set_shape("x", (1, 8, 6, 6), (2, 8, 6, 6), (4, 8, 6, 6))
    profile.set_shape_input("extents", (1,), (2,), (3,))
    config.add_optimization_profile(profile)
    config.profiling_verbosity = ProfilingVerbosity.DETAILED
    config.builder_optimization_level = 5
    config.assume_scales = True
    return network, config


def test_every_setting_comes_back():
    network, config = network_and_config()
    settings, new = config.settings(network), BuilderConfig().settings(network)
    assert [key for key in settings if settings[key] == new[key]] == []
    read = json.loads(json.dumps({**settings, "passes": ["any"]}))
    assert config_from_settings(read, network).settings(network) == settings


def test_a_new_config_comes_back_too():
    network, _ = network_and_config()
    settings = BuilderConfig().settings(network)
    assert config_from_settings(settings, network).settings(network) == settings


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"flags": ["WARP"]}, "WARP"),
        ({"flags": 7}, "TypeError"),
        ({"default_device_type": "TPU"}, "TPU"),
        ({"device_types": {"gone": "GPU"}}, "gone"),
        ({"optimization_profiles": [{"shapes": {"x": [[1], [2]]}, "shape_values": {}}]}, "TypeError"),
        ({"builder_optimization_level": 9}, "9"),
        ({"assume_scales": "yes"}, "yes"),
        ({"of_a_later_version": 1}, "of_a_later_version 1"),
        ({"DLA_core": None}, "None"),
        ({"memory_pool_limits": {"WORKSPACE": "much"}}, "much"),
    ],
)
def test_settings_of_no_config_are_refused(change, words):
    network, _ = network_and_config()
    settings = {**BuilderConfig().settings(network), **change}
    with pytest.raises(
        EngineFileError,
        match=r"this version of dryfit does not support.*Build the engine again",
    ) as caught:
        config_from_settings(settings, network)
    assert words in str(caught.value)


def test_a_setting_that_is_missing_is_refused():
    network, config = network_and_config()
    for key in config.settings(network):
        settings = {name: value for name, value in config.settings(network).items() if name != key}
        with pytest.raises(EngineFileError, match=key):
            config_from_settings(settings, network)
