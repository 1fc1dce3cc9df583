"""Checks of engines of integer operators: to the last code what the quantize method defines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dryfit.building import Builder
from dryfit.reference.executor import run_reference
from dryfit.target.target import Target
from dryfit.testing.engine_checks import built_problems, stray_problems
from dryfit.testing.integer_networks import IntegerCase, integer_trial, operator_trial
from dryfit.testing.own_process import about_to_run
from dryfit.testing.trial_networks import Trial, problems_of_trial

Array = np.ndarray[Any, Any]


def operator_problems(target: Target, case: IntegerCase) -> list[str]:
    """Run drawn operators side by side in an engine, and compare each with the definition of the method.

    Args:
        target: an installed target.
        case: one of `integer_cases`.
    """
    trial, cases = operator_trial(target, case)

    def look(trial: Trial) -> list[str]:
        engine = Builder().build_engine(trial.network, trial.config)
        about_to_run(f"{trial.network.name}, on {target.device}")
        results, expected = (
            engine.create_execution_context(1).run(trial.feeds),
            run_reference(trial.network, trial.feeds),
        )
        told = {name: _difference(results[name], expected[name]) for name in expected}
        wrong = [f"{cases[name].title}: {text}" for name, text in told.items() if text]
        return [*stray_problems(target, engine.plan), *wrong]

    return problems_of_trial(trial, "operators side by side", str(case), look)


def _difference(actual: Array, expected: Array) -> str:
    """How codes differ, in words; "" where they are equal."""
    if (actual.shape, actual.dtype) != (expected.shape, expected.dtype):
        return f"{actual.dtype} {actual.shape}, not {expected.dtype} {expected.shape}"
    distances = np.abs(actual.astype(np.int64) - expected.astype(np.int64))
    count = np.count_nonzero(distances)
    return f"{count} of {expected.size} codes differ, by {distances.max()} at most" if count else ""


def integer_network_problems(target: Target, case: IntegerCase, seed: int, folder: Path) -> list[str]:
    """Build a random integer network twice, save, load and run it with 1 and 2 threads: no code may differ.

    Args:
        target: an installed target.
        case: one of `integer_cases`.
        seed: seed of the network.
        folder: folder for the engine file.
    """

    def look(trial: Trial) -> list[str]:
        again = integer_trial(target, case, seed)
        plan = Builder().build_plan(again.network, again.config)
        path = folder / f"{case}-{seed}.engine"
        return [*stray_problems(target, plan), *built_problems(target, trial, again, 0.0, path)]

    return problems_of_trial(integer_trial(target, case, seed), f"integer network {seed}", str(case), look)
