"""What is told of candidates: how many a device got, what they need, and which memory pool fell short."""

import pytest
from tests.core.builder.networks import chain, dla_config, fp16_config

from dryfit.builder.assessment import offloadings
from dryfit.building import Builder, assess
from dryfit.engine.engine import Engine
from dryfit.errors import ConfigError
from dryfit.plugins import registry
from dryfit_dla.loadable_file import read_loadable

KIB, MIB = 1 << 10, 1 << 20
GLOBAL, LOCAL, SRAM = "DLA_GLOBAL_DRAM", "DLA_LOCAL_DRAM", "DLA_MANAGED_SRAM"


def found(network, config):
    assessment = assess(network, config)
    return offloadings(assessment.segments, assessment.rejected)


def test_all_candidates_that_fit_are_offloaded_and_their_needs_are_added():
    network, config = chain("c", "e", "c", "c", shape=(1, 64, 4, 4)), dla_config()
    (one,) = found(network, config)
    assert (one.device, one.candidates, one.offloaded, one.rejected) == ("DLA", 2, 2, [])
    segments = [segment for segment in assess(network, config).segments if segment.device == "DLA"]
    assert one.pools == {pool: sum(segment.pools[pool] for segment in segments) for pool in (SRAM, LOCAL, GLOBAL)}
    # Three kernels of 8x64x3x3, 8x8x3x3 and 8x8x3x3 in FP16, each up to 128 bytes; the second input has 8 channels.
    assert one.pools[GLOBAL] == 9216 + 1152 + 1152


def test_a_pool_that_falls_short_is_named_and_the_layers_fall_back():
    network, config = chain("c", "e", "c", shape=(1, 64, 4, 4)), dla_config()
    config.set_memory_pool_limit(GLOBAL, 8 * KIB)
    (one,) = found(network, config)
    assert (one.candidates, one.offloaded) == (2, 1)
    (lost,) = one.rejected
    assert (list(lost.layers), lost.fallback) == (["c0"], "GPU")
    assert [(short.pool, short.needed, short.limit) for short in lost.shortages] == [(GLOBAL, 9216, 8 * KIB)]
    assert "it needs 9216 bytes of DLA_GLOBAL_DRAM, whose limit is 8192 bytes" in lost.cause


def test_every_pool_that_falls_short_is_named():
    network, config = chain("c", "c", shape=(1, 64, 16, 16)), dla_config()
    for pool in (GLOBAL, LOCAL):
        config.set_memory_pool_limit(pool, 4 * KIB)
    (lost,) = found(network, config)[0].rejected
    assert sorted(short.pool for short in lost.shortages) == [GLOBAL, LOCAL]


def test_without_fallback_a_shortage_is_an_error_that_names_the_pool():
    network, config = chain("c", shape=(1, 64, 4, 4)), dla_config(fallback=False)
    config.set_memory_pool_limit(GLOBAL, 8 * KIB)
    assert [(one.candidates, one.offloaded) for one in found(network, config)] == [(1, 0)]
    with pytest.raises(Exception, match="9216 bytes of DLA_GLOBAL_DRAM, whose limit is 8192"):
        Builder().build_plan(network, config)


def test_the_managed_sram_never_falls_short():
    network, config = chain("c", "c", shape=(1, 64, 16, 16)), dla_config()
    config.set_memory_pool_limit(SRAM, 4 * KIB)
    (one,) = found(network, config)
    assert (one.candidates, one.offloaded) == (1, 1)
    assert one.pools[SRAM] == 4 * KIB < one.pools[LOCAL]


def test_an_engine_tells_the_same_when_it_was_loaded():
    network, config = chain("c", "e", "c", shape=(1, 64, 4, 4)), dla_config()
    config.set_memory_pool_limit(GLOBAL, 8 * KIB)
    plan = Engine.load(Builder().build_serialized_network(network, config)).plan
    (one,) = offloadings(plan.segments, plan.rejected)
    assert str(one).startswith("DLA segments: 1 of 2 accepted; total memory:")
    assert one.rejected[0].shortages[0].pool == GLOBAL


def test_a_device_without_pools_for_segments_is_not_told_of():
    assert found(chain("c"), fp16_config()) == []


@pytest.mark.parametrize(("limit", "following"), [(4097, 8192), (100, 4096), (3 * MIB, 4 * MIB), (0, 4096)])
def test_a_limit_that_is_refused_names_the_next_power_of_two(limit, following):
    with pytest.raises(ConfigError, match=rf"{SRAM}.*found {limit} bytes.*Set it to {following} bytes, the next power"):
        dla_config().set_memory_pool_limit(SRAM, limit)


# A core's own memory ----------------------------------------------------------------------------------------------


def large_chain():
    """Two segments whose activations take over a MiB each."""
    return chain("c", "c", "e", "c", "c", shape=(1, 8, 256, 256))


@pytest.mark.parametrize(
    ("platform", "limit", "lowered"),
    [
        ("agx-orin-64", None, None),
        ("agx-orin-64", MIB, MIB // 2),
        ("agx-orin-64", 4 * MIB, MIB // 2),
        ("agx-xavier", None, None),
        ("agx-xavier", 2 * MIB, None),
    ],
)
def test_segments_together_keep_to_the_sram_of_an_orin_core(platform, limit, lowered):
    config = dla_config()
    config.set_platform("DLA", platform)
    if limit is not None:
        config.set_memory_pool_limit(SRAM, limit)
    assessment = assess(large_chain(), config)
    assert assessment.can_be_built
    words = (
        f"DLA: the limit of {limit} bytes for {SRAM} is lowered to {lowered} bytes: a core of {platform} has {MIB}, "
        "for 2 segments at once"
    )
    assert [warning.partition(" [")[0] for warning in assessment.memory_warnings] == ([words] if lowered else [])
    assert set(assessment.memory_warnings) <= set(assessment.warnings)
    plan = Builder().build_plan(large_chain(), config)
    for found in (assessment, plan):
        used = [segment.pools[SRAM] for segment in found.segments if segment.device == "DLA"]
        assert platform == "agx-xavier" or sum(used) <= MIB
    assert set(assessment.memory_warnings) <= set(plan.warnings)


def test_one_segment_alone_may_have_the_whole_sram_of_an_orin_core_and_no_more():
    config = dla_config()
    network = chain("c", "c", "c", shape=(1, 8, 512, 512))
    for limit, count in ((MIB, 0), (4 * MIB, 1)):
        config.set_memory_pool_limit(SRAM, limit)
        assessment = assess(network, config)
        assert assessment.can_be_built
        assert [segment.pools[SRAM] for segment in assessment.segments] == [MIB]
        assert len(assessment.memory_warnings) == count
    assert f"lowered to {MIB} bytes" in assessment.memory_warnings[0]


def test_a_lowered_limit_is_what_the_loadables_were_built_with():
    config = dla_config()
    config.set_memory_pool_limit(SRAM, 4 * MIB)
    files = Builder().build_loadables(large_chain(), config).files
    assert [read_loadable(one).pool_limits[SRAM] for one in files.values()] == [MIB // 2, MIB // 2]


def test_layers_of_a_segment_that_has_nowhere_to_go_are_nowhere():
    network, config = chain("c", shape=(1, 64, 4, 4)), dla_config(fallback=False)
    config.set_memory_pool_limit(GLOBAL, 8 * KIB)
    assessment = assess(network, config)
    assert not assessment.can_be_built
    assert [(layer.device, layer.segment) for layer in assessment.layers] == [("", -1)]
    assert "9216 bytes of DLA_GLOBAL_DRAM" in assessment.layers[0].cause
    assert not assessment.segments


def test_defaults_follow_the_platform():
    pools = {pool.name: pool for pool in registry.target("DLA").memory_pools}
    assert [pools[SRAM].default_for(family) for family in ("orin", "xavier")] == [512 * KIB, MIB]
    assert [pools[name].default_for("orin") for name in (LOCAL, GLOBAL)] == [1024 * MIB, 512 * MIB]
