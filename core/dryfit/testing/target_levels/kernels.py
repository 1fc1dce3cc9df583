"""Sixth level: each kernel against the numpy reference, on layers that hypothesis draws within the limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable

from dryfit.network.data_types import DataType
from dryfit.testing import kernel_checks, kernel_trials, record_checks
from dryfit.testing.kit import Cases, declared, require_none
from dryfit.testing.target_levels.target_kit import TargetKit


def _kernel_cases(kit: TargetKernels) -> Cases:
    if any(record_checks.declaration(kit.complete, name)[1] for name in ("limits", "kernels")):
        # Which of them cannot be loaded, and why, is told by a test of the record.
        return []
    found = kernel_trials.kernel_cases(kit.complete, tuple(kit.kernel_tolerances))
    return [(str(case), case) for case in found]


class TargetKernels(TargetKit):
    """Kernels of the target's own, and those that it inherits.

    Attributes:
        kernel_tolerances: type of a group's activations to the largest error of its output, as a fraction of its
            largest magnitude. The reasons for each number stand at `kernel_checks.TOLERANCES`.
        examples: how many layers are drawn for each kernel, layer kind and data type. The same in every run.
    """

    kernel_tolerances: ClassVar[Mapping[DataType, float]] = kernel_checks.TOLERANCES
    examples: ClassVar[int] = 12
    cases = {"kernel_case": _kernel_cases}

    def test_a_kernel_computes_what_its_layers_mean(self, kernel_case: kernel_trials.KernelCase | None) -> None:
        """Odd shapes, fused layers, arrays of any strides: the reference's numbers, and nothing else is written."""
        case = declared(kernel_case, "kernel for a layer kind and data type whose numbers the kit knows")
        target, tolerance = self.complete, self.kernel_tolerances[case.dtype]
        refusals = kernel_trials.Refusals()
        config = kernel_trials.config_for_kind(target, case, refusals)
        if config is None:
            pytest.skip(f"{target.device} supports none of the kit's {case.kind} layers: {refusals.last}")

        @st.composite
        def trials(draw: Any) -> kernel_trials.KernelTrial | None:
            return kernel_trials.draw_trial(draw, target, case, config, refusals)

        @settings(
            max_examples=self.examples,
            derandomize=True,
            database=None,
            deadline=None,
            report_multiple_bugs=False,
            suppress_health_check=[*HealthCheck],
        )
        @given(trials())
        def holds(trial: kernel_trials.KernelTrial | None) -> None:
            assume(trial is not None)
            if trial is not None:
                require_none(kernel_checks.kernel_problems(trial, tolerance))

        try:
            holds()
        except Unsatisfiable:
            pytest.skip(f"no layer that was drawn can be run: {refusals.last}")
