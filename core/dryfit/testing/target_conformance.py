"""The conformance kit of targets: a third party subclasses it in one file, and pytest runs the tests.

The levels that build and run networks come first: networks, segments, memory pools.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from dryfit.network.data_types import DataType
from dryfit.target.memory_pools import MemoryPool
from dryfit.target.target import Target
from dryfit.testing import (
    declared_checks,
    engine_checks,
    integer_checks,
    integer_networks,
    pool_checks,
    record_checks,
    segment_checks,
    trial_networks,
)
from dryfit.testing.kit import Cases, declared, require_none
from dryfit.testing.own_process import run_in_own_process
from dryfit.testing.target_declaration import (
    NO_TRIAL_PRECISION,
    TargetArithmetic,
    TargetDeclaration,
    TargetFormats,
    TargetKit,
    trial_precision_cases,
)
from dryfit.testing.target_kernels import TargetKernels
from dryfit.testing.target_limits import TargetLimits


def trial_cases(kit: TargetNetworks) -> Cases:
    """Return (precision, seed) for each random network."""
    return [(f"{name}-{seed}", (one, seed)) for name, one in trial_precision_cases(kit) for seed in range(kit.networks)]


class TargetNetworks(TargetKit):
    """Engines, which are built and run in a separate process (see `own_process`).

    Attributes:
        tolerances: precision to the maximum error of an output, as a fraction of its largest magnitude. FP32: sums in
            another order. FP16: each layer rounds to 11 bits, 0.05 %, and the errors of several layers add up.
    """

    tolerances: ClassVar[Mapping[DataType, float]] = {DataType.FLOAT: 2e-5, DataType.HALF: 1e-2}
    cases = {"engine_precision": trial_precision_cases, "trial": trial_cases}

    def test_some_network_can_be_made_for_the_target(self, engine_precision: DataType | None) -> None:
        """At least one of the kit's layers is supported; otherwise the following tests test nothing."""
        precision = declared(engine_precision, NO_TRIAL_PRECISION)
        if not trial_networks.supported_examples(self.complete, precision):
            kinds = ", ".join(trial_networks.KINDS)
            pytest.fail(f"{self.target.device} supports none of {kinds} in {precision.text}", pytrace=False)

    def test_an_engine_computes_what_the_network_means(
        self, trial: tuple[DataType, int] | None, tmp_path: Path
    ) -> None:
        """Engines built twice are identical, and match the reference after save and load with 1 and 2 threads."""
        precision, seed = declared(trial, NO_TRIAL_PRECISION)
        tolerance = self.tolerances[precision]
        run_in_own_process(
            lambda: require_none(engine_checks.engine_problems(self.complete, precision, seed, tolerance, tmp_path))
        )

    def test_supported_layers_stay_on_the_device(self, trial: tuple[DataType, int] | None) -> None:
        """Without fallback, a network of supported layers runs entirely on the device."""
        case = declared(trial, NO_TRIAL_PRECISION)
        run_in_own_process(lambda: require_none(engine_checks.whole_problems(self.complete, *case)))

    def test_a_network_is_computed_as_the_target_declares(self, trial: tuple[DataType, int] | None) -> None:
        """Layers on the device use declared types and formats, and prefer the target's own kernels."""
        case = declared(trial, NO_TRIAL_PRECISION)
        run_in_own_process(lambda: require_none(declared_checks.network_problems(self.complete, *case)))

    def test_a_refused_layer_needs_fallback(self, engine_precision: DataType | None) -> None:
        """An unsupported layer is an error with a reason without fallback, and runs on the host with fallback."""
        precision = declared(engine_precision, NO_TRIAL_PRECISION)

        def look() -> None:
            problems = engine_checks.fallback_problems(self.complete, precision, self.tolerances[precision])
            if problems is None:
                pytest.skip(f"{self.target.device} supports every layer that the kit puts behind one that it supports")
            require_none(problems)

        run_in_own_process(look)

    def test_another_process_builds_the_same_engines(self, engine_precision: DataType | None) -> None:
        """Builds do not depend on hash order, memory addresses or time."""
        precision = declared(engine_precision, NO_TRIAL_PRECISION)
        require_none(engine_checks.process_problems(self.complete, precision, self.networks))


_INTEGER_CASES: weakref.WeakKeyDictionary[Target, list[integer_networks.IntegerCase]] = weakref.WeakKeyDictionary()
"""Cases of each target: to find them takes some 2,000 verdicts, and two tests ask."""


def _integer_case_cases(kit: TargetIntegerNetworks) -> Cases:
    if any(record_checks.declaration(kit.complete, name)[1] for name in ("limits", "kernels")):
        return []  # a test of the record reports what cannot be loaded
    if kit.target not in _INTEGER_CASES:
        _INTEGER_CASES[kit.target] = integer_networks.integer_cases(kit.complete)
    return [(str(case), case) for case in _INTEGER_CASES[kit.target]]


def _integer_trial_cases(kit: TargetIntegerNetworks) -> Cases:
    found = _integer_case_cases(kit)
    return [(f"{name}-{seed}", (case, seed)) for name, case in found for seed in range(kit.networks)]


_NO_INTEGERS = "quantized operator of an installed quantize method that the device supports"


class TargetIntegerNetworks(TargetKit):
    """Engines of quantized operators, such as those of TFLite models, in separate processes (see `own_process`).

    They concern devices that compute INT8, UINT8 or INT16 and support the layer kind `quantized_operator`. There is no
    tolerance: every code must be the one that the quantize method defines.
    """

    cases = {"integer_case": _integer_case_cases, "integer_trial": _integer_trial_cases}

    def test_an_integer_operator_gives_the_codes_of_its_method(
        self, integer_case: integer_networks.IntegerCase | None
    ) -> None:
        """Operators with sums on and beside half codes, limits, and one scale or one per channel; all on the device."""
        case = declared(integer_case, _NO_INTEGERS)
        run_in_own_process(lambda: require_none(integer_checks.operator_problems(self.complete, case)))

    def test_an_integer_network_gives_the_codes_of_its_method(
        self, integer_trial: tuple[integer_networks.IntegerCase, int] | None, tmp_path: Path
    ) -> None:
        """Engines built twice are identical, and exact after save and load with 1 and 2 threads."""
        case, seed = declared(integer_trial, _NO_INTEGERS)
        run_in_own_process(
            lambda: require_none(integer_checks.integer_network_problems(self.complete, case, seed, tmp_path))
        )


class TargetSegments(TargetNetworks):
    """Compiled and exported segments and cost estimates, with the networks and tolerances of the previous level."""

    cases = {"segment_trial": trial_cases}

    def test_a_compiled_segment_computes_what_its_layers_mean(self, segment_trial: tuple[DataType, int] | None) -> None:
        """Compiling is reproducible, results match the reference, and damaged programs are rejected."""
        declared(self.own("compile_segment"), "segment compiler")
        precision, seed = declared(segment_trial, NO_TRIAL_PRECISION)
        tolerance = self.tolerances[precision]
        run_in_own_process(
            lambda: require_none(segment_checks.segment_problems(self.complete, precision, seed, tolerance))
        )

    def test_an_exported_segment_has_the_same_bytes_each_time(self, segment_trial: tuple[DataType, int] | None) -> None:
        """Every segment of two builds has a file, and the files are identical."""
        declared(self.own("export_segment"), "exporter of segments")
        require_none(segment_checks.export_problems(self.complete, *declared(segment_trial, NO_TRIAL_PRECISION)))

    def test_a_cost_estimate_says_on_what_it_rests(self, segment_trial: tuple[DataType, int] | None) -> None:
        """Estimates are finite, greater than 0 and reproducible, with a basis and a source."""
        declared(self.own("estimate_cost"), "cost function")
        require_none(segment_checks.cost_problems(self.complete, *declared(segment_trial, NO_TRIAL_PRECISION)))


class TargetMemoryPools(TargetKit):
    """Memory pools, and their use by plans."""

    cases = {
        "pool": lambda kit: [(pool.name, pool) for pool in kit.own("memory_pools") or ()],
        "trial_precision": trial_precision_cases,
    }

    def test_a_memory_pool_takes_its_own_defaults(self, pool: MemoryPool | None) -> None:
        """Names, contents, defaults and minimum limits are valid."""
        require_none(pool_checks.pool_problems(declared(pool, "memory pool"), self.target))

    def test_the_memory_of_a_plan_adds_up(self, trial_precision: DataType | None) -> None:
        """Live tensors do not overlap, and the peak matches the plan and is within the limits."""
        declared(self.own("memory_pools"), "memory pool")
        precision = declared(trial_precision, NO_TRIAL_PRECISION)
        seeds = range(self.networks)
        require_none(
            [problem for seed in seeds for problem in pool_checks.memory_problems(self.complete, precision, seed)]
        )


class TargetConformance(
    TargetDeclaration,
    TargetLimits,
    TargetFormats,
    TargetMemoryPools,
    TargetArithmetic,
    TargetKernels,
    TargetIntegerNetworks,
    TargetSegments,
):
    """Tests for every target: all levels, each of which requires the previous ones.

    Tests of what a target does not declare are skipped, with the reason. The settings are documented at each level:
    `boundary_layers` and `layers` for the limits, `examples` and `kernel_tolerances` for the kernels, `networks` and
    `tolerances` for the networks.

    Attributes:
        target: the target record; the only required attribute of a subclass.

    Example:
        >>> from dryfit.testing import TargetConformance
        >>> class TestAcmeNpu(TargetConformance):
        ...     target = TARGET
    """
