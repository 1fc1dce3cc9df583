"""The DLA target passes the kit that every target is held to, with a layer for every limit."""

from typing import Any

import pytest
from tests.conformance.targets.dla_layers import LAYERS

from dryfit.errors import NetworkError
from dryfit.plugins import registry
from dryfit.target.boundaries import boundary_cases
from dryfit.testing.boundary_checks import cases_of, question_at
from dryfit.testing.target_conformance import TargetConformance

TABLE: Any = registry.target("DLA").limits
RULES = list({rule.id: rule for rule in TABLE.rules if boundary_cases(rule)}.values())


class TestDLA(TargetConformance):
    target = registry.target("DLA")
    boundary_layers = LAYERS


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_limit_has_a_layer_on_both_sides(rule):
    sides = {case.allowed for case in cases_of(rule, registry.target("DLA"), LAYERS[rule.id])}
    # Every mode of a scale layer is allowed: there is no other side.
    assert sides == ({True} if rule.id == "dla.scale.mode" else {True, False})


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_refusal_tells_the_value_that_is_refused(rule):
    for case in cases_of(rule, registry.target("DLA"), LAYERS[rule.id]):
        if case.allowed:
            continue
        try:
            finding = rule.check(question_at(registry.target("DLA"), rule, case, LAYERS[rule.id]))
        except NetworkError:
            # Such a layer cannot be made at all.
            continue
        assert str(case.value) in rule.violation(finding).message
        assert rule.check.constraint.text in rule.violation(finding).message
