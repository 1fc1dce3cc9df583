"""Sixth level: each kernel against the numpy reference, on layers that hypothesis generates within the limits."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.network.data_types import DataType
from dryfit.testing import declared_checks, kernel_checks, kernel_trials, record_checks
from dryfit.testing.kit import Cases, declared, require_none
from dryfit.testing.own_process import run_in_own_process
from dryfit.testing.target_declaration import TargetKit

_FEW = 2
"""Layers that are drawn where what is looked at depends on the kernel, and hardly on the layer."""

_HOPELESS = 100
"""Draws without a layer that can be run, after which no more are made. Where a kernel of the bundled targets serves
some of a kind's layers, the first is found within 28."""


def _kernel_cases(kit: TargetKernels) -> Cases:
    if any(record_checks.declaration(kit.complete, name)[1] for name in ("limits", "kernels")):
        # Which of them cannot be loaded, and why, is told by a test of the record.
        return []
    found = kernel_trials.kernel_cases(kit.complete, tuple(kit.kernel_tolerances))
    return [(str(case), case) for case in found]


def _own_kernel_cases(kit: TargetKernels) -> Cases:
    is_host = kit.target.segment_rules.is_host
    return [] if is_host else [(name, case) for name, case in _kernel_cases(kit) if case.kernel is not None]


@functools.cache
def _let_hypothesis_read_constants() -> None:
    """Draw some numbers, once: the first draw reads the source of every module, which each fork would do again."""

    @settings(max_examples=10, derandomize=True, database=None, deadline=None, suppress_health_check=[*HealthCheck])
    @given(st.lists(st.integers(), min_size=20, max_size=20))
    def draw(_: list[int]) -> None:
        pass

    draw()


class TargetKernels(TargetKit):
    """The target's own and inherited kernels. They run in a separate process (see `own_process`).

    Attributes:
        kernel_tolerances: type of a group's activations to the maximum error of its output, as a fraction of its
            largest magnitude. `kernel_checks.TOLERANCES` gives the reason for each number.
        examples: number of layers generated per kernel, layer kind and data type; the same layers in every run.
    """

    kernel_tolerances: ClassVar[Mapping[DataType, float]] = kernel_checks.TOLERANCES
    examples: ClassVar[int] = 12
    cases = {"kernel_case": _kernel_cases, "own_kernel_case": _own_kernel_cases}

    def test_a_kernel_computes_what_its_layers_mean(self, kernel_case: kernel_trials.KernelCase | None) -> None:
        """Odd shapes, fused layers and any strides match the reference, and nothing else is written."""
        case = declared(kernel_case, "kernel for a layer kind and data type whose numbers the kit knows")
        tolerance = self.kernel_tolerances[case.dtype]

        def holds(trial: kernel_trials.KernelTrial, _: BuilderConfig) -> None:
            require_none(kernel_checks.kernel_problems(trial, tolerance))

        _let_hypothesis_read_constants()
        run_in_own_process(lambda: self._for_drawn_layers(case, self.examples, holds))

    def test_a_network_is_run_by_the_kernels_that_the_target_brings(
        self, own_kernel_case: kernel_trials.KernelCase | None
    ) -> None:
        """A kernel is called for a layer it supports, in an FP32 network that allows the kernel's type."""
        case = declared(own_kernel_case, "kernel of the target's own whose data type the kit knows")

        def holds(trial: kernel_trials.KernelTrial, config: BuilderConfig) -> None:
            problems = declared_checks.kernel_use_problems(self.complete, case, trial, config)
            assume(problems is not None)
            require_none(problems or [])

        _let_hypothesis_read_constants()
        run_in_own_process(lambda: self._for_drawn_layers(case, min(self.examples, _FEW), holds))

    def _for_drawn_layers(
        self,
        case: kernel_trials.KernelCase,
        examples: int,
        holds: Callable[[kernel_trials.KernelTrial, BuilderConfig], None],
    ) -> None:
        """Draw layers of a case that the target supports; skipped where there are none."""
        target, refusals = self.complete, kernel_trials.Refusals()
        config = kernel_trials.config_for_kind(target, case, refusals)
        if config is None:
            pytest.skip(f"{target.device} supports none of the kit's {case.kind} layers: {refusals.last}")

        drawn: list[bool] = []

        def skip() -> None:
            pytest.skip(f"no layer that was drawn can be run: {refusals.last}")

        @st.composite
        def trials(draw: Any) -> kernel_trials.KernelTrial | None:
            trial = kernel_trials.draw_trial(draw, target, case, config, refusals)
            drawn.append(trial is not None)
            if len(drawn) == _HOPELESS and not any(drawn):
                skip()
            return trial

        @settings(
            max_examples=examples,
            derandomize=True,
            database=None,
            deadline=None,
            report_multiple_bugs=False,
            suppress_health_check=[*HealthCheck],
        )
        @given(trials())
        def each_holds(trial: kernel_trials.KernelTrial | None) -> None:
            assume(trial is not None)
            if trial is not None:
                holds(trial, config)

        try:
            each_holds()
        except Unsatisfiable:
            skip()
