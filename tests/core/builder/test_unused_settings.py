import logging

import pytest
from tests.core.builder.networks import chain, convolution, dla_config, fp16_config, image_network

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag, EngineCapability, MemoryPoolType
from dryfit.builder.config.enumerations import FLAGS_WITH_EFFECT
from dryfit.building import Builder
from dryfit.errors import PlacementError


def warnings_of(config, network=None):
    return list(Builder().build_plan(network or chain("c", "r"), config).warnings)


@pytest.mark.parametrize("flag", sorted(set(BuilderFlag) - set(FLAGS_WITH_EFFECT)), ids=lambda flag: flag.name)
def test_a_flag_that_changes_nothing_is_told_once_in_plan_and_log(flag, caplog):
    config = BuilderConfig()
    config.set_flag(flag)
    with caplog.at_level(logging.WARNING, "dryfit.builder"):
        found = warnings_of(config)
    assert found == [f"The flag {flag.name} has no effect in this version"]
    assert [record.getMessage() for record in caplog.records] == found


def test_every_flag_that_is_not_in_the_table_is_told():
    config = BuilderConfig()
    config.flags = sum(1 << flag for flag in BuilderFlag if flag not in FLAGS_WITH_EFFECT)
    assert len(warnings_of(config)) == len(BuilderFlag) - len(FLAGS_WITH_EFFECT)


NEED_MORE = {BuilderFlag.INT8, BuilderFlag.REFIT_INDIVIDUAL, BuilderFlag.SPARSE_WEIGHTS}
"""Flags that need scales, marked weights, or weights at all."""


@pytest.mark.parametrize("flag", sorted(set(FLAGS_WITH_EFFECT) - NEED_MORE), ids=lambda flag: flag.name)
def test_a_flag_with_an_effect_is_not_told(flag):
    config = BuilderConfig()
    config.set_flag(flag)
    assert warnings_of(config) == []


def test_int8_without_scales_is_told():
    config = BuilderConfig()
    config.set_flag(BuilderFlag.INT8)
    (warning,) = warnings_of(config)
    assert warning.startswith("The flag INT8 has no effect, because no layer has a scale for each of its tensors")


def test_sparse_weights_that_no_layer_has_are_told():
    config = BuilderConfig()
    config.set_flag(BuilderFlag.SPARSE_WEIGHTS)
    (warning,) = warnings_of(config)
    assert warning.startswith("The flag SPARSE_WEIGHTS has no effect: no layer has weights whose zeros its device")


def test_a_safety_engine_is_told_where_no_rule_asks_for_it():
    config = BuilderConfig()
    config.engine_capability = EngineCapability.SAFETY
    (warning,) = warnings_of(config)
    assert warning.startswith("The engine capability SAFETY has no effect in this version")


def test_the_rules_of_the_dla_ask_for_the_capability():
    config = dla_config()
    config.engine_capability = EngineCapability.SAFETY
    assert not any(
        "The engine capability SAFETY has no effect in this version" in warning for warning in warnings_of(config)
    )
    config.allow_fallback(None)
    with pytest.raises(PlacementError, match="SAFETY"):
        Builder().build_plan(chain("c"), config)


def workspace_network():
    network, x = image_network((1, 16, 32, 32))
    network.mark_output(convolution(network, x, "conv", maps=16))
    return network


def test_a_limit_of_scratch_memory_that_a_kernel_exceeds_is_told():
    config = BuilderConfig()
    config.set_memory_pool_limit(MemoryPoolType.WORKSPACE, 16)
    (warning,) = warnings_of(config, workspace_network())
    assert warning.startswith("The limit of 16 bytes of memory pool WORKSPACE is not kept: 'conv' takes ")
    taken = int(warning.split(" takes ")[1].split()[0])
    assert taken > 16
    config.set_memory_pool_limit(MemoryPoolType.WORKSPACE, taken)
    assert warnings_of(config, workspace_network()) == []
    config.set_memory_pool_limit(MemoryPoolType.WORKSPACE, taken - 1)
    assert len(warnings_of(config, workspace_network())) == 1


def test_a_plain_config_has_no_such_warnings():
    assert warnings_of(fp16_config()) == []
