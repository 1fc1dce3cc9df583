"""Structured sparsity on the DLA: both sides of each rule, and what none of them does."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from tests.targets.dla.questions import convolution, fully_connected, question, verdict, with_ranges

from dryfit.network.data_types import DataType
from dryfit.plugins import registry
from dryfit.testing.boundary_checks import cases_of, decision_problems
from dryfit.testing.limit_checks import rule_problems
from dryfit_dla.sparsity import SPARSITY, is_sparse_eligible

RULES = SPARSITY.rules.all_rules


def asked(layer, precision="INT8", weights=None, **options):
    return attrs.evolve(
        question(layer, flags=("INT8", "FP16"), **options), precision=DataType[precision], weights=weights
    )


def failed(layer, **options):
    """The ids of the rules that stand against skipped zeros, without the device's name."""
    return [one.rule.removeprefix("dla.sparsity.") for one in SPARSITY.verdict(asked(layer, **options)).violations]


def told(layer, severity, **options):
    found = getattr(SPARSITY.verdict(asked(layer, **options)), severity)
    return [one.rule.removeprefix("dla.sparsity.") for one in found]


def layer(channels=128, maps=64, kernel=(1, 1), **parameters):
    return convolution((1, channels, 8, 8), kernel, maps, **parameters)


def test_the_first_rule_wants_an_int8_convolution_on_orin():
    assert failed(layer()) == []
    assert failed(layer(), precision="HALF") == ["precision"]
    assert failed(layer(), platform="agx-xavier") == ["platform"]
    assert failed(fully_connected((1, 128, 1, 1), 64)) == ["kind"]


def test_the_first_rule_wants_another_input_format_than_hwc4():
    own = convolution((1, 4, 8, 8), (3, 3), 64)
    own.inputs[0].allowed_formats = {"DLA_HWC4"}
    assert failed(own) == ["input_format", "input_channels_newer"]
    own.inputs[0].allowed_formats = {"CHW32"}
    assert failed(own) == ["input_channels_newer"]


@pytest.mark.parametrize(
    ("channels", "found"), [(63, ["input_channels"]), (64, ["input_channels"]), (65, []), (66, [])]
)
def test_a_kernel_has_more_than_64_input_channels(channels, found):
    assert failed(layer(channels), software="8.4") == found


@pytest.mark.parametrize(("channels", "found"), [(63, ["input_channels_newer"]), (64, []), (65, [])])
def test_64_input_channels_gain_as_published_from_8_5_on_against_the_documentation(channels, found):
    assert failed(layer(channels)) == found
    assert ("input_channels_documented" in told(layer(channels), "warnings")) == (channels < 65)


def test_the_channels_of_a_group_count_where_there_are_groups():
    assert failed(layer(256, 256, num_groups=8)) == ["input_channels_newer"]
    assert failed(layer(256, 256, num_groups=2)) == []


@pytest.mark.parametrize("maps", [*range(1, 66), 96, 127, 128, 130, 192])
def test_what_is_left_of_output_maps_beside_64_is_listed(maps):
    allowed = maps % 64 in {0, 1, 2, 4, 8, 16, 32}
    assert failed(layer(maps=maps)) == ([] if allowed else ["output_maps"])


@pytest.mark.parametrize(
    ("software", "severity", "rule"), [("8.4", "violations", "weight_size"), ("8.5", "warnings", "weight_size_newer")]
)
def test_256k_weights_are_the_most_of_old_software_and_a_doubt_since_8_5(software, severity, rule):
    fitting, too_many = layer(1024, 256), layer(1024, 257)
    assert rule not in told(fitting, severity, software=software)
    assert rule in told(too_many, severity, software=software)
    assert is_sparse_eligible(asked(layer(512, 1024), software=software)) is (software == "8.5")


def test_two_of_each_four_channels_are_zero_for_every_map_and_place():
    weights = np.zeros((64, 128, 3, 3), np.int8)
    weights[:, 1::2] = 1
    own = layer(128, 64, (3, 3))
    assert failed(own, weights=weights) == []
    assert SPARSITY.has_pattern(asked(own, weights=weights)) is True
    weights[63, 124, 2, 2] = 1  # the last group has three now
    assert failed(own, weights=weights) == ["pattern"]
    assert SPARSITY.has_pattern(asked(own, weights=weights)) is False
    assert is_sparse_eligible(asked(own, weights=weights)), "other weights would have their zeros skipped"


def test_the_message_counts_the_groups():
    weights = np.ones((64, 128, 1, 1), np.int8)
    (found,) = SPARSITY.verdict(asked(layer(), weights=weights)).violations
    assert found.actual == "2048 of 2048 groups with more"
    assert found.allowed == "at most 2 of each 4 other than 0"


@pytest.mark.parametrize(("channels", "noted"), [(128, False), (129, True), (192, True), (256, False)])
def test_channels_beside_multiples_of_128_are_noted(channels, noted):
    assert ("full_gain" in told(layer(channels), "notes")) is noted
    assert failed(layer(channels)) == []


def test_that_newer_releases_may_lift_restrictions_is_noted_where_one_is_broken():
    assert "newer_releases" in told(layer(64), "notes")
    assert "newer_releases" in told(layer(maps=65 + 2), "notes")
    assert "newer_releases" not in told(layer(), "notes")
    assert "newer_releases" not in told(layer(64), "notes", platform="agx-xavier")


def test_nothing_of_it_is_a_reason_for_a_layer_to_leave():
    own = with_ranges(layer(32, 67))
    assert failed(own) == ["input_channels_newer", "output_maps"]
    assert "dense" in told(own, "notes")
    assert verdict(own, flags=("INT8",)).supported
    assert "dense" not in told(layer(), "notes")
    assert not {one.id for one in RULES} & {one.id for one in registry.target("DLA").limits.all_rules}


def test_every_rule_of_the_list_is_there_and_sound():
    assert sorted({one.number for one in RULES}) == [f"SS-0{index}" for index in range(1, 9)]
    dla = registry.target("DLA")
    known = attrs.evolve(SPARSITY.rules, rules=RULES)
    assert [problem for one in RULES for problem in rule_problems(one, dla, known)] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda one: one.id)
def test_each_rule_decides_as_its_words_say(rule):
    cases = cases_of(rule, registry.target("DLA"), None) if rule.id != "dla.sparsity.kind" else []
    assert [problem for case in cases for problem in decision_problems(rule, case)] == []


def test_a_question_without_weights_is_about_the_shape_alone():
    assert failed(layer(), weights=None) == []
    assert SPARSITY.has_pattern(asked(fully_connected(), weights=np.ones((10, 256)))) is None
