"""Segments that are cut to fit a device's memory: the parts, and that an engine of them computes the same."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.builder.networks import activation, add, chain, convolution, image_network

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.segments.pools import parts_that_fit, units_in_order
from dryfit.building import Builder, assess
from dryfit.engine.engine import Engine

DEVICE = """
from dryfit.target.fusions import Fusion
from dryfit.target.limits import LimitTable
from dryfit.target.memory_pools import MemoryPool
from dryfit.target.target import Platform, SegmentRules, Target

LIMITS = LimitTable("ACME_NPU", [], supported_kinds={{"convolution", "activation", "elementwise"}})
POOLS = (MemoryPool("ACME_SRAM", {{"": None}}, {holds!r}, per="segment"),)
TARGET = Target(
    "ACME_NPU", "Acme", [Platform("one", "one", "One")], limits_at="acme:LIMITS", memory_pools_at="acme:POOLS",
    segment_rules=SegmentRules(cuts_to_fit={cuts}),
)
"""
TENSOR_BYTES = 8 * 32 * 32 * 4


@pytest.fixture
def assessed(install):
    """A function from a network, a limit in bytes and more to what a build for such a device would do."""

    def run(network, limit, holds="activations", cuts=True, fallback="CPU"):
        if not installed:
            text = DEVICE.format(holds=holds, cuts=cuts)
            install("acme", text, {"dryfit.targets": {"acme-npu": "acme:TARGET"}})
            installed.append(text)
        config = BuilderConfig()
        config.default_device_type = "ACME_NPU"
        config.allow_fallback(fallback)
        config.set_memory_pool_limit("ACME_SRAM", limit)
        return assess(network, config), config

    installed = []
    return run


def layers(assessment):
    return [one.layers for one in assessment.segments]


def wide_chain(*kinds):
    return chain(*kinds, shape=(1, 8, 32, 32))


@given(st.lists(st.integers(0, 12), max_size=40))
def test_each_part_fits_and_would_not_with_the_next_unit(sizes):
    units = [[size] for size in sizes]

    def fits(part):
        return sum(part) <= 10

    parts = parts_that_fit(units, fits)
    assert [size for part in parts for size in part] == sizes
    if sum(sizes) > 10:
        assert all(fits(part) or len(part) == 1 for part in parts)
        for part, following in itertools.pairwise(parts):
            assert not fits([*part, following[0]])


def test_a_search_asks_about_a_few_lengths_only():
    asked = []
    parts_that_fit([[1]] * 1000, lambda part: asked.append(len(part)) or len(part) <= 100)
    assert len(asked) < 200


def test_units_keep_together_what_runs_as_one_in_an_order_that_can_run():
    network, x = image_network()
    first, second = convolution(network, x, "first"), convolution(network, x, "second")
    network.mark_output(add(network, activation(network, first, "relu"), second, "sum"))
    edges = [("first", "relu"), ("relu", "sum"), ("second", "sum")]
    units = units_in_order(network.layers, [["first", "relu"]], edges)
    assert [[layer.name for layer in unit] for unit in units] == [["first", "relu"], ["second"], ["sum"]]
    waiting = units_in_order(network.layers, [["first", "sum"]], edges)
    assert [len(unit) for unit in waiting] == [1, 1, 1, 1]


def test_a_pool_that_is_too_small_cuts_the_segment_and_all_layers_stay(assessed):
    found, _ = assessed(wide_chain("c", "c", "c", "c"), TENSOR_BYTES)
    assert layers(found) == [["c0", "c1"], ["c2", "c3"]]
    assert {one.device for one in found.layers} == {"ACME_NPU"}
    assert found.rejected == []
    (warning,) = found.memory_warnings
    assert "cut into 2 segments" in warning
    assert f"whose limit is {TENSOR_BYTES} bytes" in found.segments[1].cut_cause
    assert 'holds="cache"' in found.segments[1].cut_cause
    assert all(one.pools["ACME_SRAM"] <= TENSOR_BYTES for one in found.segments)


def test_layers_that_run_as_one_are_not_cut_apart(assessed):
    found, _ = assessed(wide_chain("c", "r", "c", "r", "c", "r"), TENSOR_BYTES - 1)
    assert layers(found) == [["c0", "r1"], ["c2", "r3"], ["c4", "r5"]]


def test_a_cache_never_cuts(assessed):
    found, _ = assessed(wide_chain("c", "c", "c", "c"), 1, holds="cache")
    assert layers(found) == [["c0", "c1", "c2", "c3"]]


def test_a_device_that_says_so_loses_the_segment_as_a_whole(assessed):
    found, _ = assessed(wide_chain("c", "c", "c", "c"), TENSOR_BYTES, cuts=False)
    assert {one.device for one in found.layers} == {"CPU"}
    assert len(found.rejected) == 1


def test_a_layer_whose_weights_do_not_fit_moves_alone(assessed):
    network, x = image_network((1, 4, 8, 8))
    network.mark_output(activation(network, convolution(network, activation(network, x, "a"), "c"), "b"))
    found, _ = assessed(network, 16, holds="weights")
    assert [(one.device, one.layers) for one in found.segments] == [
        ("ACME_NPU", ["a"]),
        ("CPU", ["c"]),
        ("ACME_NPU", ["b"]),
    ]
    (lost,) = found.rejected
    assert lost.layers == ["c"]


def test_without_fallback_only_what_cannot_fit_is_refused(assessed):
    found, _ = assessed(wide_chain("c", "c", "c", "c"), TENSOR_BYTES, fallback=None)
    assert found.can_be_built


def test_an_engine_of_parts_computes_what_one_segment_computes(assessed):
    network = wide_chain("c", "r", "c", "r", "c", "c")
    small, config = assessed(network, TENSOR_BYTES)
    engine = Builder().build_engine(network, config)
    assert [list(one.layers) for one in engine.plan.segments] == layers(small)
    assert engine.plan.segments == small.segments
    x = np.random.default_rng(0).standard_normal((1, 8, 32, 32)).astype(np.float32)
    large, config = assessed(network, 1 << 30)
    assert len(large.segments) == 1
    whole = Builder().build_engine(network, config)
    for one in (engine, Engine.load(engine.serialize())):
        found = one.create_execution_context(1).run({"x": x})
        for name, wanted in whole.create_execution_context(1).run({"x": x}).items():
            np.testing.assert_array_equal(found[name], wanted)


def test_the_same_network_is_always_cut_alike(assessed):
    network = wide_chain(*"crcrcrcccrcc")
    first, second = (assessed(network, TENSOR_BYTES)[0].segments for _ in range(2))
    assert len(first) > 2
    assert first == second
