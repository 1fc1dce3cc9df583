"""The conformance kit of targets: a third party subclasses it in one file, and pytest does the rest.

Before it stand the levels that build and run networks: networks, segments, memory pools.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from dryfit.network.data_types import DataType
from dryfit.target.memory_pools import MemoryPool
from dryfit.testing import declared_checks, engine_checks, pool_checks, segment_checks, trial_networks
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
    """(precision, seed) of each random network."""
    return [(f"{name}-{seed}", (one, seed)) for name, one in trial_precision_cases(kit) for seed in range(kit.networks)]


class TargetNetworks(TargetKit):
    """Engines, which are built and run in a process of their own (see `own_process`).

    Attributes:
        tolerances: precision to the largest error of an output, as a fraction of its largest magnitude. FP32: sums in
            another order. FP16: each layer rounds to 11 bits, 0.05 %, and errors of several layers add up.
    """

    tolerances: ClassVar[Mapping[DataType, float]] = {DataType.FLOAT: 2e-5, DataType.HALF: 1e-2}
    cases = {"engine_precision": trial_precision_cases, "trial": trial_cases}

    def test_some_network_can_be_made_for_the_target(self, engine_precision: DataType | None) -> None:
        """At least one of the kit's layers is supported, so that the next tests mean something."""
        precision = declared(engine_precision, NO_TRIAL_PRECISION)
        if not trial_networks.supported_examples(self.complete, precision):
            kinds = ", ".join(trial_networks.KINDS)
            pytest.fail(f"{self.target.device} supports none of {kinds} in {precision.text}", pytrace=False)

    def test_an_engine_computes_what_the_network_means(
        self, trial: tuple[DataType, int] | None, tmp_path: Path
    ) -> None:
        """Build twice, save, load, run with 1 and 2 threads: the same bytes, the reference's numbers."""
        precision, seed = declared(trial, NO_TRIAL_PRECISION)
        tolerance = self.tolerances[precision]
        run_in_own_process(
            lambda: require_none(engine_checks.engine_problems(self.complete, precision, seed, tolerance, tmp_path))
        )

    def test_supported_layers_stay_on_the_device(self, trial: tuple[DataType, int] | None) -> None:
        """Without fallback a network of layers that the device supports is whole on it."""
        case = declared(trial, NO_TRIAL_PRECISION)
        run_in_own_process(lambda: require_none(engine_checks.whole_problems(self.complete, *case)))

    def test_a_network_is_computed_as_the_target_declares(self, trial: tuple[DataType, int] | None) -> None:
        """What is on the device is in a type and format that the target lists, and run by its own kernels first."""
        case = declared(trial, NO_TRIAL_PRECISION)
        run_in_own_process(lambda: require_none(declared_checks.network_problems(self.complete, *case)))

    def test_a_refused_layer_needs_fallback(self, engine_precision: DataType | None) -> None:
        """Without fallback it is an error that says why; with it the layer runs on the host."""
        precision = declared(engine_precision, NO_TRIAL_PRECISION)

        def look() -> None:
            problems = engine_checks.fallback_problems(self.complete, precision, self.tolerances[precision])
            if problems is None:
                pytest.skip(f"{self.target.device} supports every layer that the kit puts behind one that it supports")
            require_none(problems)

        run_in_own_process(look)

    def test_another_process_builds_the_same_engines(self, engine_precision: DataType | None) -> None:
        """The order of hashing, memory addresses and the time make no difference."""
        precision = declared(engine_precision, NO_TRIAL_PRECISION)
        require_none(engine_checks.process_problems(self.complete, precision, self.networks))


class TargetSegments(TargetNetworks):
    """Compiled and exported segments, cost estimates: on the networks of the level before and with its tolerances."""

    cases = {"segment_trial": trial_cases}

    def test_a_compiled_segment_computes_what_its_layers_mean(self, segment_trial: tuple[DataType, int] | None) -> None:
        """Compile twice, load, run: the same bytes, the reference's numbers; a damaged program is refused."""
        declared(self.own("compile_segment"), "segment compiler")
        precision, seed = declared(segment_trial, NO_TRIAL_PRECISION)
        tolerance = self.tolerances[precision]
        run_in_own_process(
            lambda: require_none(segment_checks.segment_problems(self.complete, precision, seed, tolerance))
        )

    def test_an_exported_segment_has_the_same_bytes_each_time(self, segment_trial: tuple[DataType, int] | None) -> None:
        """Build twice: each segment has its file, and the files are equal."""
        declared(self.own("export_segment"), "exporter of segments")
        require_none(segment_checks.export_problems(self.complete, *declared(segment_trial, NO_TRIAL_PRECISION)))

    def test_a_cost_estimate_says_on_what_it_rests(self, segment_trial: tuple[DataType, int] | None) -> None:
        """Finite numbers above zero, a basis, a source, the same for the same layers."""
        declared(self.own("estimate_cost"), "cost function")
        require_none(segment_checks.cost_problems(self.complete, *declared(segment_trial, NO_TRIAL_PRECISION)))


class TargetMemoryPools(TargetKit):
    """Memory pools, and what plans put there."""

    cases = {
        "pool": lambda kit: [(pool.name, pool) for pool in kit.own("memory_pools") or ()],
        "trial_precision": trial_precision_cases,
    }

    def test_a_memory_pool_takes_its_own_defaults(self, pool: MemoryPool | None) -> None:
        """Names, contents, defaults, least limits."""
        require_none(pool_checks.pool_problems(declared(pool, "memory pool"), self.target))

    def test_the_memory_of_a_plan_adds_up(self, trial_precision: DataType | None) -> None:
        """Tensors that live at a time lie apart; the peak is what the plan tells, and within the limits."""
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
    TargetSegments,
):
    """Tests that every target passes: all levels, each of which needs those before it.

    What a target does not declare is skipped, with the reason. What can be set is told by each level: `boundary_layers`
    and `layers` by the limits, `examples` and `kernel_tolerances` by the kernels, `networks` and `tolerances` by the
    networks.

    Attributes:
        target: the record; the one thing that a subclass has to state.

    Example:
        >>> from dryfit.testing import TargetConformance
        >>> class TestAcmeNpu(TargetConformance):
        ...     target = TARGET
    """
