"""Second level: the limit rules on both sides of each limit, and a verdict for any layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import pytest

from dryfit.network.layer import LAYER_KINDS
from dryfit.target.boundaries import BoundaryCase
from dryfit.target.limits import LimitTable, Rule
from dryfit.testing import boundary_checks, limit_checks
from dryfit.testing.example_layers import EXAMPLES
from dryfit.testing.kit import Cases, declared, require_none
from dryfit.testing.target_declaration import TargetKit


def boundary_cases(kit: TargetLimits) -> Cases:
    """Return (rule, case) for the values on both sides of each limit."""
    return [
        (f"{rule.id}-{case.value}", (rule, case))
        for table in _tables(kit)
        for rule in table.rules
        for case in boundary_checks.cases_of(rule, kit.target, kit.boundary_layers.get(rule.id))
    ]


def _rules(kit: TargetLimits) -> Cases:
    return [(rule.id, rule) for table in _tables(kit) for rule in table.all_rules]


def _tables(kit: TargetKit) -> list[LimitTable]:
    """The rules on whole layers, and those on sparse weights."""
    limits, sparsity = kit.own("limits"), kit.own("sparsity")
    return [*([] if limits is None else [limits]), *([] if sparsity is None else [sparsity.rules])]


def _kinds(kit: TargetLimits) -> Cases:
    return [] if kit.own("limits") is None else [(kind, kind) for kind in sorted(LAYER_KINDS)]


class TargetLimits(TargetKit):
    """Limit rules.

    Attributes:
        boundary_layers: rule id to a function from a value to a layer in which the checked quantity has that value. Not
            needed for rules on a plain parameter of a layer.
        layers: number of random layers per kind.
    """

    boundary_layers: ClassVar[Mapping[str, boundary_checks.LayerWith]] = {}
    layers: ClassVar[int] = 12
    cases = {
        "rule": _rules,
        "boundary": boundary_cases,
        "kind": _kinds,
        "example_kind": lambda kit: [(kind, kind) for kind in EXAMPLES],
    }

    def test_a_rule_can_be_understood_and_can_hold(self, rule: Rule | None) -> None:
        """Id, text, source, remedy, severity and fidelity are set; kinds, platforms and versions exist."""
        one: Rule = declared(rule, "limit rule")
        table = next(table for table in _tables(self) if one in table.all_rules)
        require_none(limit_checks.rule_problems(one, self.complete, table))

    def test_a_rule_decides_at_its_limits_as_it_says(self, boundary: tuple[Rule, BoundaryCase] | None) -> None:
        """The check decides correctly for the values on both sides of each limit."""
        require_none(boundary_checks.decision_problems(*declared(boundary, "rule with limits")))

    def test_a_layer_at_a_limit_is_decided_as_the_rule_says(self, boundary: tuple[Rule, BoundaryCase] | None) -> None:
        """The rule decides correctly for layers with the values on both sides of each limit."""
        rule, case = declared(boundary, "rule with limits")
        try:
            problems = boundary_checks.layer_problems(self.complete, rule, case, self.boundary_layers.get(rule.id))
        except boundary_checks.NoLayerError as reason:
            pytest.skip(str(reason))
        require_none(problems)

    def test_boundary_layers_belong_to_rules_with_limits(self) -> None:
        """Every entry of `boundary_layers` belongs to a rule with limits."""
        known = {rule.id for _, (rule, _) in boundary_cases(self)}
        left = sorted(set(self.boundary_layers) - known)
        require_none([f"boundary_layers[{one!r}]: no rule with limits has this id" for one in left])

    def test_a_layer_kind_is_supported_or_has_a_reason(self, kind: str | None) -> None:
        """Every layer kind is supported or has a documented reason."""
        table = self._table()
        require_none(limit_checks.kind_problems(declared(kind, "layer kind"), table))

    def test_supported_layer_kinds_exist(self) -> None:
        """No supported kind is misspelled."""
        require_none(limit_checks.unknown_kind_problems(self._table()))

    def test_a_device_that_computes_in_int8_says_whether_it_takes_quantized_models(self) -> None:
        """The table lists quantize and dequantize layers, as supported or with a reason."""
        require_none(limit_checks.quantization_problems(self.target))

    def test_any_layer_gets_a_verdict(self, example_kind: str) -> None:
        """No rule raises, and every reason is complete."""
        require_none(limit_checks.verdict_problems(self.complete, example_kind, layers=self.layers))

    def _table(self) -> LimitTable:
        return declared(self.own("limits"), "limit: every layer is supported")  # type: ignore[no-any-return]
