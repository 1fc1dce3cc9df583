"""Which layers of a placed network run sparse, and what that changes: estimates, and no result."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from tests.core.builder.designs import designed
from tests.core.builder.networks import named, weights
from tests.core.builder.sparse_networks import int8_config, pruned_by_hand, wide_network, with_ranges

from dryfit.answers.network_cost import network_cost
from dryfit.builder.placement.target_variant import TargetVariant
from dryfit.builder.sparse_weights import network_sparsity
from dryfit.building import Builder
from dryfit.network.data_types import DataType
from dryfit.plugins import registry
from dryfit.quantization.int8_weights import SparsePattern
from dryfit.target.checks import at_least, parameter
from dryfit.target.limits import LimitTable, rule, rules
from dryfit.target.sparsity import Sparsity, zeros_follow

ONE_OF_TWO = SparsePattern(1, 2)
ACME = Sparsity(
    ONE_OF_TWO,
    LimitTable(
        "GPU",
        rules(
            "convolution",
            rule("acme.pattern", zeros_follow(ONE_OF_TWO), source="Acme manual"),
            rule("acme.maps", parameter("num_output_maps", at_least(60)), source="Acme manual"),
        ),
    ),
    "gpu.acme.pattern",
)
"""What another device could declare."""


def half_pruned():
    """c0 has 2:4 weights, c1 has not."""
    network = wide_network()
    network.layer("c0").kernel = pruned_by_hand(network.layer("c0").kernel)
    return network


def test_a_layer_is_sparse_where_rules_and_weights_allow_it():
    design = designed(half_pruned(), int8_config("SPARSE_WEIGHTS"))
    first, second = network_sparsity(design)
    assert (first.layer, first.is_eligible, first.has_pattern, first.is_sparse) == ("c0", True, True, True)
    assert (first.device, first.asked, first.macs) == ("DLA", "DLA", 32 * 68 * 16)
    assert (second.is_eligible, second.has_pattern, second.is_sparse) == (False, False, False)
    assert [one.rule for one in second.verdict.violations] == [
        "dla.sparsity.input_channels_newer",
        "dla.sparsity.pattern",
    ]
    assert design.sparse_layers == {"c0"}


def test_without_the_flag_no_layer_counts_as_sparse():
    assert designed(half_pruned(), int8_config()).sparse_layers == frozenset()


def test_weights_that_are_rounded_to_zero_are_zeros():
    network = wide_network((64,))
    kernel = pruned_by_hand(network.layer("c0").kernel)
    kernel[kernel == 0] = 1e-4  # far below half a step of any map's scale
    network.layer("c0").kernel = kernel
    design = designed(network, int8_config("SPARSE_WEIGHTS"))
    assert design.sparse_layers == {"c0"}
    real = designed(network, int8_config("SPARSE_WEIGHTS", device="GPU"))
    assert real.sparse_layers == frozenset(), "the GPU states no rules"


def test_the_platform_and_the_precision_of_the_layer_are_asked_about():
    network = half_pruned()
    xavier = network_sparsity(designed(network, int8_config(platform="agx-xavier")))[0]
    assert [one.rule for one in xavier.verdict.violations] == ["dla.sparsity.platform"]
    network.layer("c0").precision = DataType.HALF
    half = network_sparsity(designed(network, int8_config()))[0]
    assert [one.rule for one in half.verdict.violations] == ["dla.sparsity.precision"]


def test_another_device_may_be_asked_in_the_place_of_one_that_skips_no_zeros():
    config = int8_config(device="GPU")
    design = designed(half_pruned(), config)
    assert {one.asked for one in network_sparsity(design)} == {None}
    first = network_sparsity(design, TargetVariant.chosen(config, "DLA"))[0]
    assert (first.device, first.asked, first.is_eligible, first.has_pattern) == ("GPU", "DLA", True, True)
    assert not first.is_sparse


def test_any_target_can_state_a_pattern_and_rules_of_its_own(monkeypatch):
    gpu = attrs.evolve(registry.target("GPU"), sparsity_at=f"{__name__}:ACME")
    monkeypatch.setattr(
        "dryfit.plugins.registry.target",
        lambda device, own=registry.target: gpu if str(device) == "GPU" else own(device),
    )
    network = wide_network((60, 59), channels=64)
    for name in ("c0", "c1"):
        network.layer(name).kernel[:, ::2] = 0
    first, second = network_sparsity(designed(network, int8_config(device="GPU")))
    assert (first.asked, first.is_sparse) == ("GPU", True)
    assert [one.rule for one in second.verdict.violations] == ["gpu.acme.maps"]


def test_the_estimate_counts_skipped_zeros_and_only_those():
    network = half_pruned()
    dense, sparse = (network_cost(designed(network, int8_config(*flags))) for flags in ((), ("SPARSE_WEIGHTS",)))
    before, after = (
        {step.layers[0]: step for one in cost.segments for step in one.estimate.steps} for cost in (dense, sparse)
    )
    assert after["c0"].cycles < before["c0"].cycles
    assert after["c1"] == before["c1"]
    assert [one.estimate.macs for one in sparse.segments] == [one.estimate.macs for one in dense.segments]


def test_an_engine_with_the_flag_computes_the_same_bits():
    network = half_pruned()
    values = weights(1, 68, 4, 4, seed=9)
    found = [
        Builder().build_engine(network, int8_config(*flags)).create_execution_context().run(values)["relu"]
        for flags in ((), ("SPARSE_WEIGHTS",))
    ]
    np.testing.assert_array_equal(found[0], found[1])
    assert len(np.unique(found[0])) > 20


@pytest.mark.parametrize(("prunes", "warned"), [(True, False), (False, True)])
def test_a_flag_that_skips_nothing_is_told(prunes, warned):
    network = half_pruned() if prunes else wide_network()
    plan = Builder().build_plan(network, int8_config("SPARSE_WEIGHTS"))
    assert any("The flag SPARSE_WEIGHTS has no effect: no layer" in warning for warning in plan.warnings) is warned


def test_layers_without_a_pattern_rule_have_none():
    network = wide_network((64,))
    (relu,) = network.outputs
    network.unmark_output(relu)
    layer = network.add_fully_connected(relu, 8, weights(8, 64 * 16))
    network.mark_output(named(layer, "dense"))
    found = {one.layer: one for one in network_sparsity(designed(with_ranges(network), int8_config()))}
    assert found["dense"].has_pattern is None
    assert not found["dense"].is_eligible
