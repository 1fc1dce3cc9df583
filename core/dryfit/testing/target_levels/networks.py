"""Seventh level: small networks from end to end, with and without fallback, and the same bytes every time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from dryfit.network.data_types import DataType
from dryfit.testing import declared_checks, engine_checks, reproducibility_checks, trial_networks
from dryfit.testing.kit import Cases, declared, require_none
from dryfit.testing.own_process import run_in_own_process
from dryfit.testing.target_levels.target_kit import NO_TRIAL_PRECISION, TargetKit, trial_precision_cases


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
            pytest.fail(f"{self.target.device} supports none of {kinds} in {precision.name}", pytrace=False)

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
        require_none(reproducibility_checks.process_problems(self.complete, precision, self.networks))
