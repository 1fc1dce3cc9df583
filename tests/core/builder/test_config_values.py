"""What a config refuses: values that are none of its own, and settings that no build looks at."""

import enum

import numpy as np
import pytest

from dryfit.builder.config.builder_config import (
    BuilderConfig,
    BuilderFlag,
    EngineCapability,
    MemoryPoolType,
    ProfilingVerbosity,
)
from dryfit.errors import ConfigError, UnknownNameError


class OtherCapability(enum.IntEnum):
    SAFETY = 1


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("DLA_core", "x", "'x'"),
        ("DLA_core", 1.0, "1.0"),
        ("DLA_core", True, "True"),
        ("engine_capability", 9, "9"),
        ("engine_capability", None, "None"),
        ("profiling_verbosity", 3, "3"),
        ("builder_optimization_level", "3", "'3'"),
        ("builder_optimization_level", None, "None"),
        ("assume_scales", 1, "1"),
        ("flags", "FP16", "'FP16'"),
    ],
)
def test_a_value_of_a_wrong_type_is_refused_and_nothing_changes(name, value, found):
    config = BuilderConfig()
    before = config.settings()
    with pytest.raises(ConfigError) as error:
        setattr(config, name, value)
    assert error.value.found == found
    assert error.value.allowed
    assert config.settings() == before


@pytest.mark.parametrize("call", ["set_flag", "clear_flag", "get_flag"])
@pytest.mark.parametrize(
    ("flag", "remedy"),
    [(99, None), (-1, None), ("FP16", "Did you mean BuilderFlag.FP16?"), (True, None), (1.0, None), (None, None)],
)
def test_what_is_no_flag_is_refused(call, flag, remedy):
    with pytest.raises(ConfigError, match="Unknown builder flag") as error:
        getattr(BuilderConfig(), call)(flag)
    assert (error.value.found, error.value.remedy) == (repr(flag), remedy)
    assert error.value.allowed.startswith("BuilderFlag.FP16, BuilderFlag.INT8, ")


def test_a_member_of_another_enumeration_is_refused_and_the_right_one_named():
    with pytest.raises(ConfigError) as error:
        BuilderConfig().engine_capability = OtherCapability.SAFETY
    assert error.value.remedy == "Did you mean EngineCapability.SAFETY?"


def test_tensorrts_numbers_and_numpys_integers_are_taken():
    config = BuilderConfig()
    config.set_flag(17)
    config.engine_capability = 2
    config.profiling_verbosity = 2
    config.builder_optimization_level = np.int64(4)
    config.set_memory_pool_limit(MemoryPoolType.WORKSPACE, np.int64(4096))
    assert config.get_flag(BuilderFlag.BF16)
    assert config.engine_capability is EngineCapability.DLA_STANDALONE
    assert config.profiling_verbosity is ProfilingVerbosity.DETAILED
    assert type(config.builder_optimization_level) is int
    assert type(config.get_memory_pool_limit("WORKSPACE")) is int


def test_a_pool_and_its_limit_are_of_their_types():
    config = BuilderConfig()
    with pytest.raises(ConfigError) as error:
        config.set_memory_pool_limit(MemoryPoolType.WORKSPACE, "1G")
    assert (error.value.message, error.value.found) == ("The limit of memory pool WORKSPACE must be an integer", "'1G'")
    with pytest.raises(UnknownNameError, match="memory pool"):
        config.set_memory_pool_limit(0, 1)
    with pytest.raises(ConfigError, match="numbers with dots"):
        config.set_software("DLA", 10.3)


@pytest.mark.parametrize(
    ("name", "close"), [("default_device", "default_device_type"), ("dla_core", "DLA_core"), ("flag", "flags")]
)
def test_an_unknown_setting_is_refused_with_the_closest(name, close):
    config = BuilderConfig()
    with pytest.raises(UnknownNameError) as error:
        setattr(config, name, 1)
    assert error.value.remedy == f"Did you mean {close!r}?"
    assert not hasattr(config, name)


def test_what_can_only_be_read_is_refused():
    with pytest.raises(UnknownNameError, match="fallback_device"):
        BuilderConfig().fallback_device = "GPU"


def test_a_setting_of_an_older_tensorrt_names_what_stands_in_its_place():
    with pytest.raises(AttributeError) as error:
        BuilderConfig().max_workspace_size = 1 << 30
    assert "set_memory_pool_limit" in error.value.remedy


def test_a_monitor_and_private_attributes_can_be_set():
    config = BuilderConfig()
    config.progress_monitor = monitor = object()
    config._note = "mine"
    assert (config.progress_monitor, config._note) == (monitor, "mine")
