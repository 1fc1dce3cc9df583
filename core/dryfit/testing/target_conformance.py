"""The conformance kit of targets: a third party subclasses it in one file, and pytest does the rest.

It has six levels, each of which needs those before it: the record, the limits, the tensor formats, the memory pools,
the arithmetic, and the numbers that come out of engines. What a target does not declare is skipped, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

import dryfit.network.network  # noqa: F401  fills the table of layer kinds
from dryfit.network.data_types import DataType
from dryfit.network.layer import LAYER_KINDS
from dryfit.target.boundaries import BoundaryCase
from dryfit.target.limits import LimitTable, Rule
from dryfit.target.memory_pools import MemoryPool
from dryfit.target.target import Target
from dryfit.testing import (
    arithmetic_checks,
    boundary_checks,
    engine_checks,
    format_checks,
    limit_checks,
    pool_checks,
    record_checks,
)
from dryfit.testing.example_layers import EXAMPLES

Cases = Sequence[tuple[str, Any]]
"""(what a test is called, what it is given)."""


class TargetConformance:
    """Tests that every target passes.

    Attributes:
        target: the record; the one thing that a subclass has to state.
        boundary_layers: rule id to a function from a value to a layer in which what the rule looks at has the value.
            Rules on a plain parameter of a layer need none.
        tolerances: precision to the largest error of an output, as a fraction of its largest magnitude. FP32: sums in
            another order. FP16: each layer rounds to 11 bits, 0.05 %, and errors of several layers add up.
        networks: how many random networks are built for each precision.
        layers: how many random layers of each kind are asked about.

    Example:
        >>> from dryfit.testing import TargetConformance
        >>> class TestAcmeNpu(TargetConformance):
        ...     target = TARGET
    """

    target: ClassVar[Target]
    boundary_layers: ClassVar[Mapping[str, boundary_checks.LayerWith]] = {}
    tolerances: ClassVar[Mapping[DataType, float]] = {DataType.FLOAT: 2e-5, DataType.HALF: 1e-2}
    networks: ClassVar[int] = 6
    layers: ClassVar[int] = 12

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One test for each rule, format, pool, precision and network that the target declares."""
        for name in metafunc.fixturenames:
            if name in _CASES:
                # A target without any of them gets one test, which says so.
                cases = _CASES[name](self) or [("none", None)]
                metafunc.parametrize(name, [pytest.param(value, id=label) for label, value in cases])

    # The record ---------------------------------------------------------------------------------------------------

    def test_the_device_and_its_platforms_have_names(self) -> None:
        """Device, title, what is simulated, platforms."""
        _require_none(record_checks.name_problems(self.target))

    def test_each_platform_has_software_within_its_range(self) -> None:
        """Versions rise; ranges contain some of them."""
        _require_none(record_checks.software_problems(self.target))

    def test_the_precisions_contain_the_default(self) -> None:
        """Computation types."""
        _require_none(record_checks.precision_problems(self.target))

    def test_every_declaration_can_be_loaded(self) -> None:
        """What the record names by `..._at`."""
        _require_none(record_checks.declaration_problems(self.target))

    def test_the_target_is_installed_and_its_record_imports_nothing_heavy(self) -> None:
        """Its entry point; no numpy, so that `dryfit targets list` stays quick."""
        _require_none(record_checks.installation_problems(self.target))

    # Limits -------------------------------------------------------------------------------------------------------

    def test_a_rule_can_be_understood_and_can_hold(self, rule: Rule | None) -> None:
        """Id, text, source, remedy, severity, fidelity; kinds, platforms and versions that exist."""
        _require_none(limit_checks.rule_problems(_declared(rule, "limit rules"), self.target, self._table()))

    def test_a_rule_decides_at_its_limits_as_it_says(self, boundary: tuple[Rule, BoundaryCase] | None) -> None:
        """The values on both sides of each limit, given to the check."""
        _require_none(boundary_checks.decision_problems(*_declared(boundary, "rules with limits")))

    def test_a_layer_at_a_limit_is_decided_as_the_rule_says(self, boundary: tuple[Rule, BoundaryCase] | None) -> None:
        """The values on both sides of each limit, in a layer."""
        rule, case = _declared(boundary, "rules with limits")
        try:
            problems = boundary_checks.layer_problems(self.target, rule, case, self.boundary_layers.get(rule.id))
        except boundary_checks.NoLayerError as reason:
            pytest.skip(str(reason))
        _require_none(problems)

    def test_boundary_layers_belong_to_rules_with_limits(self) -> None:
        """No entry of `boundary_layers` is left over."""
        known = {rule.id for _, (rule, _) in _boundaries(self)}
        left = sorted(set(self.boundary_layers) - known)
        _require_none([f"boundary_layers[{one!r}]: no rule with limits has this id" for one in left])

    def test_a_layer_kind_is_supported_or_has_a_reason(self, kind: str) -> None:
        """The lists of kinds."""
        _require_none(limit_checks.kind_problems(kind, self._table()))

    def test_supported_layer_kinds_exist(self) -> None:
        """No kind is misspelt."""
        _require_none(limit_checks.unknown_kind_problems(self._table()))

    def test_any_layer_gets_a_verdict(self, example_kind: str) -> None:
        """`can_run_on` never raises, and its reasons are whole."""
        _require_none(limit_checks.verdict_problems(self.target, example_kind, layers=self.layers))

    # Tensor formats -----------------------------------------------------------------------------------------------

    def test_a_format_is_declared_whole(self, format_use: format_checks.FormatUse | None) -> None:
        """Types, source, name."""
        _require_none(format_checks.declaration_problems(_declared(format_use, "tensor formats"), self.target))

    def test_a_tensor_survives_its_format(self, format_use: format_checks.FormatUse | None) -> None:
        """Extents, strides, size, pack and unpack agree, on every platform family."""
        use = _declared(format_use, "tensor formats")
        families = dict.fromkeys(platform.family for platform in self.target.platforms)
        _require_none([problem for family in families for problem in format_checks.memory_problems(use, family)])

    # Memory pools -------------------------------------------------------------------------------------------------

    def test_a_memory_pool_takes_its_own_defaults(self, pool: MemoryPool | None) -> None:
        """Names, contents, defaults, least limits."""
        _require_none(pool_checks.pool_problems(_declared(pool, "memory pools"), self.target))

    # Arithmetic ---------------------------------------------------------------------------------------------------

    def test_a_precision_says_how_it_computes(self, precision: DataType) -> None:
        """Accumulator, rounding, fidelity, source."""
        _declared(self.target.arithmetic_at, "arithmetic")
        _require_none(arithmetic_checks.arithmetic_problems(precision, self.target))

    def test_only_precisions_have_an_arithmetic(self) -> None:
        """Nothing is left over."""
        _declared(self.target.arithmetic_at, "arithmetic")
        _require_none(arithmetic_checks.superfluous_arithmetic(self.target))

    # Numbers ------------------------------------------------------------------------------------------------------

    def test_some_network_can_be_made_for_the_target(self, engine_precision: DataType | None) -> None:
        """At least one of the kit's layers is supported, so that the next test means something."""
        precision = _declared(engine_precision, "precision whose numbers the kit knows (FLOAT, HALF)")
        if not engine_checks.supported_examples(self.target, precision):
            pytest.fail(f"{self.target.device} supports none of {', '.join(engine_checks.KINDS)} in {precision.name}")

    def test_an_engine_computes_what_the_network_means(
        self, trial: tuple[DataType, int] | None, tmp_path: Path
    ) -> None:
        """Build twice, save, load, run with 1 and 2 threads: the same bytes, the reference's numbers."""
        precision, seed = _declared(trial, "precision whose numbers the kit knows (FLOAT, HALF)")
        tolerance = self.tolerances[precision]
        _require_none(engine_checks.engine_problems(self.target, precision, seed, tolerance, tmp_path))

    def _table(self) -> LimitTable:
        return _declared(self.target.limits, "limits: every layer is supported")  # type: ignore[no-any-return]


def _require_none(problems: Sequence[str]) -> None:
    """Fail with all problems at once."""
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)


def _declared(value: Any, what: str) -> Any:
    """The value; the test is skipped where the target declares none."""
    if value is None:
        pytest.skip(f"the target declares no {what}")
    return value


def _loaded(kit: TargetConformance, name: str) -> Any:
    """A declaration; None where it cannot be loaded, which a test of the record tells."""
    return record_checks.declaration(kit.target, name)[0]


def _rules(kit: TargetConformance) -> Cases:
    table = _loaded(kit, "limits")
    return [] if table is None else [(rule.id, rule) for rule in table.all_rules]


def _kinds(kit: TargetConformance) -> Cases:
    return [] if _loaded(kit, "limits") is None else [(kind, kind) for kind in sorted(LAYER_KINDS)]


def _boundaries(kit: TargetConformance) -> Cases:
    table = _loaded(kit, "limits")
    return [
        (f"{rule.id}-{case.value}", (rule, case))
        for rule in ([] if table is None else table.rules)
        for case in boundary_checks.cases_of(rule, kit.target, kit.boundary_layers.get(rule.id))
    ]


def _format_uses(kit: TargetConformance) -> Cases:
    if _loaded(kit, "input_formats") is None or _loaded(kit, "output_formats") is None:
        return []
    return [(str(use), use) for use in format_checks.format_uses(kit.target)]


def _trials(kit: TargetConformance) -> Cases:
    return [(f"{name}-{seed}", (one, seed)) for name, one in _engine_precisions(kit) for seed in range(kit.networks)]


def _engine_precisions(kit: TargetConformance) -> Cases:
    return [(one.name, one) for one in engine_checks.FLAGS if one in kit.target.precisions]


_CASES: Mapping[str, Callable[[Any], Cases]] = {
    "rule": _rules,
    "boundary": _boundaries,
    "kind": _kinds,
    "example_kind": lambda kit: [(kind, kind) for kind in EXAMPLES],
    "format_use": _format_uses,
    "pool": lambda kit: [(pool.name, pool) for pool in _loaded(kit, "memory_pools") or ()],
    "precision": lambda kit: [(one.name, one) for one in kit.target.precisions],
    "engine_precision": _engine_precisions,
    "trial": _trials,
}
"""Argument of a test to the cases that it is run for."""
