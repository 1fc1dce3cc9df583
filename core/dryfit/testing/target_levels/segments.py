"""Eighth level: what only some targets have: a compiler of segments with its loader, an exporter, a cost function."""

from __future__ import annotations

from dryfit.network.data_types import DataType
from dryfit.testing import export_checks, segment_checks
from dryfit.testing.kit import declared, require_none
from dryfit.testing.own_process import run_in_own_process
from dryfit.testing.target_levels.networks import TargetNetworks, trial_cases
from dryfit.testing.target_levels.target_kit import NO_TRIAL_PRECISION


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
        require_none(export_checks.export_problems(self.complete, *declared(segment_trial, NO_TRIAL_PRECISION)))

    def test_a_cost_estimate_says_on_what_it_rests(self, segment_trial: tuple[DataType, int] | None) -> None:
        """Finite numbers above zero, a basis, a source, the same for the same layers."""
        declared(self.own("estimate_cost"), "cost function")
        require_none(segment_checks.cost_problems(self.complete, *declared(segment_trial, NO_TRIAL_PRECISION)))
