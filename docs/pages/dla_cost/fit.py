"""How the four fitted numbers of the cost model are found from the published rows. Nothing is measured here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from docs.pages.dla_cost.published import PublishedRow, log_errors

from dryfit_dla.cost.parameters import FITTED, CostParameters

Vector = np.ndarray[Any, Any]

GUESS = {"bytes_per_second": 100e9, "step_seconds": 2e-6, "step_cycles": 2000.0, "refetching_sparse_gain": 1.3}
"""Where every fit begins: no rows have a say in it."""
ROUNDS = 60
STEP = 1e-4
SMALL_CHANGE = 1e-7
"""Of a number's logarithm: the fit ends when no number changes more, far below the digits that the page shows."""
SMALLEST_FACTOR = 1e-3
"""How far a number may fall below its start: what the rows do not determine does not run away to 0."""


def fit(rows: Sequence[PublishedRow], start: CostParameters) -> CostParameters:
    """The parameters with the least sum of squared logarithmic errors, by Gauss and Newton on their logarithms.

    Args:
        rows: to fit.
        start: the fixed parameters.
    """
    start = _changed(start, GUESS)
    first = np.log([getattr(start, name) for name in FITTED])
    found = first.copy()
    damping = 1e-3
    errors = np.array(log_errors(rows, start))
    for _ in range(ROUNDS):
        slopes = np.stack([_slope(rows, start, found, index, errors) for index in range(len(FITTED))], axis=1)
        normal = slopes.T @ slopes
        change = np.linalg.solve(normal + damping * np.eye(len(FITTED)), -slopes.T @ errors)
        trial = np.maximum(found + np.clip(change, -1, 1), first + math.log(SMALLEST_FACTOR))
        tried = np.array(log_errors(rows, _with(start, trial)))
        if tried @ tried <= errors @ errors:
            largest = np.max(np.abs(trial - found))
            found, errors, damping = trial, tried, damping / 4
            if largest < SMALL_CHANGE:
                break
        else:
            damping *= 8
    return _with(start, found)


def _slope(rows: Sequence[PublishedRow], start: CostParameters, at: Vector, index: int, errors: Vector) -> Vector:
    moved = at.copy()
    moved[index] += STEP
    return (np.array(log_errors(rows, _with(start, moved))) - errors) / STEP


def _with(start: CostParameters, logarithms: Vector) -> CostParameters:
    return _changed(start, dict(zip(FITTED, map(float, np.exp(logarithms)), strict=True)))


def _changed(parameters: CostParameters, numbers: Mapping[str, Any]) -> CostParameters:
    return attrs.evolve(parameters, **numbers)


def mean_error(rows: Sequence[PublishedRow], parameters: CostParameters) -> float:
    """The mean absolute logarithmic error."""
    return float(np.mean(np.abs(log_errors(rows, parameters))))
