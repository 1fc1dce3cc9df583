"""Parameters of a cost model, fitted again to latencies of a board.

What is fitted are logarithms, of parameters and of latencies: a parameter is off by a factor, and an error of 10 % of a
short latency counts as much as one of a long latency. Each parameter is held near its documented value as far as the
latencies do not say otherwise, so that two that only act together share their change. The error of the fit is that of
measurements which were left out of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dryfit.attrs_classes import define, frozen
from dryfit.target.overlays import FittedParameter, numbers, with_numbers

PRIOR = math.log(3)
"""How far a parameter is expected to be off, as the standard deviation of its logarithm. Our choice: a factor of 3."""
NOISE = 0.02
"""The least relative error of a latency that is reckoned with. Our choice: medians of runs repeat within 2 %."""
STEP = 0.01
"""The change of a logarithm with which derivatives are found."""
ROUNDS = 30
"""The rounds of the fit, each with new derivatives; it stops before when nothing changes."""
GROUPS = 5
"""Into so many groups the measurements are divided, each of which is left out of the fit once."""
LEAST_EFFECT = 0.01
"""A parameter that changes no latency by so much when it grows by 10 % is not fitted."""
LEAST_ERROR = 0.1
"""The least relative error that a fitted model states. Our choice: a network that was not measured differs more from
what was than its parts differ from one another."""
CLOSE = 1e-3
"""The fit ends when no logarithm changes by more."""
LEAST_MEASUREMENTS = 4
"""With fewer, nothing is fitted."""

Vector = np.ndarray[Any, Any]


@frozen(eq=False)
class Measurement:
    """A measured latency, and how it is estimated.

    Attributes:
        name: build and segment.
        group: build: what is left out of a fit together.
        microseconds: the measured latency.
        estimate: parameters -> estimated latency in us.
        precision: computation type of most of it.
    """

    name: str
    group: str
    microseconds: float
    estimate: Callable[[Any], float]
    precision: str = ""


@frozen
class LearnedCost:
    """The fit of a cost model.

    Attributes:
        parameters: name to what was fitted, of the parameters that the latencies determine.
        measurements: number of latencies.
        error_before: median relative error of the documented parameters.
        error_fitted: median relative error of the fitted parameters.
        error_held_out: median relative error of latencies that were left out of the fit.
        largest_held_out: largest of these.
    """

    parameters: Mapping[str, FittedParameter]
    measurements: int
    error_before: float
    error_fitted: float
    error_held_out: float
    largest_held_out: float


def learn_cost(parameters: Any, measurements: Sequence[Measurement]) -> LearnedCost | None:
    """Return the parameters with which a cost model comes closest to measured latencies.

    Args:
        parameters: the platform's record; its class names in `LEARNABLE` what a board's latencies can determine.
        measurements: of one board in one power mode.

    Returns:
        The fit; None with too few measurements, or if none depends on a parameter.
    """
    usable = [one for one in measurements if one.microseconds > 0]
    if len(usable) < LEAST_MEASUREMENTS:
        return None
    fit = _Fit.of(parameters, usable)
    if not fit.names:
        return None
    known, values, errors = numbers(parameters), fit.values(fit.at), fit.errors()
    held_out = fit.held_out()
    found = {
        name: FittedParameter(_rounded(values[name], known[name]), float(f"{errors[name]:.2g}"), len(usable))
        for name in fit.names
    }
    return LearnedCost(
        parameters=found | _error_factors(parameters, usable, held_out),
        measurements=len(usable),
        error_before=_median_error(usable, parameters),
        error_fitted=_median_error(usable, with_numbers(parameters, values)),
        error_held_out=float(np.median(np.abs(held_out))),
        largest_held_out=float(np.max(np.abs(held_out))),
    )


def _near(value: float, factor: float) -> float:
    """A value times a factor; a count stays whole."""
    return max(1, round(value * factor)) if isinstance(value, int) else value * factor


def _rounded(value: float, known: float) -> float:
    return int(value) if isinstance(known, int) else float(f"{value:.4g}")


def _median_error(measurements: Sequence[Measurement], record: Any) -> float:
    return float(np.median([abs(one.estimate(record) / one.microseconds - 1) for one in measurements]))


@define(eq=False)
class _Fit:
    """A fit by Gauss-Newton on logarithms.

    Attributes:
        parameters: the documented record.
        measurements: the latencies.
        names: the parameters that are fitted: those on which a latency depends.
        at: logarithms of their factors.
        slopes: float64[measurements, names], derivatives of the logarithms of the estimates there.
        rest: float64[measurements], logarithms of measured by estimated latency there.
        noise: relative error of a latency that the fit leaves.
    """

    parameters: Any
    measurements: Sequence[Measurement]
    names: Sequence[str]
    at: Vector
    slopes: Vector
    rest: Vector
    noise: float = NOISE

    @classmethod
    def of(cls, parameters: Any, measurements: Sequence[Measurement]) -> _Fit:
        """Fit the parameters on which a latency depends."""
        known = numbers(parameters)
        names = [name for name in getattr(type(parameters), "LEARNABLE", ()) if known[name] > 0]
        count = len(measurements)
        start, slopes = np.zeros(len(names)), np.zeros((count, len(names)))
        made = cls(parameters, measurements, names, start, slopes, np.zeros(count))
        made._converge()
        # Where the fit is, and not at the documented values, beside which another parameter may be without effect.
        effects = np.max(np.abs(made.slopes), axis=0, initial=0.0)
        kept = [index for index, effect in enumerate(effects) if effect * 0.1 >= LEAST_EFFECT]
        made.names, made.at = [names[index] for index in kept], made.at[kept]
        made._converge()
        return made

    def _converge(self) -> None:
        """Move to where the measurements and the documented values agree best."""
        for _ in range(ROUNDS):
            self._look()
            self.noise = max(float(np.sqrt(np.mean(self.rest**2))), NOISE)
            change = np.clip(self.step(np.ones(len(self.measurements), dtype=bool)), -1.0, 1.0)
            # Of two parameters that only act together, a whole step can overshoot again and again.
            best = self._misfit(self.at)
            while np.max(np.abs(change), initial=0.0) >= CLOSE and self._misfit(self.at + change) > best:
                change = change / 2
            self.at = self.at + change
            if np.max(np.abs(change), initial=0.0) < CLOSE:
                break
        self._look()
        self.noise = max(float(np.sqrt(np.mean(self.rest**2))), NOISE)

    def _misfit(self, at: Vector) -> float:
        rest = np.log([one.microseconds for one in self.measurements]) - self._estimated(at)
        return float(np.sum(rest**2) / self.noise**2 + np.sum(at**2) / PRIOR**2)

    def values(self, at: Vector) -> dict[str, float]:
        """The parameters at logarithms of their factors."""
        known = numbers(self.parameters)
        return {name: _near(known[name], math.exp(log)) for name, log in zip(self.names, at, strict=True)}

    def errors(self) -> dict[str, float]:
        """Standard errors of the logarithms, which are relative errors of the parameters."""
        deviations = np.sqrt(np.diag(np.linalg.inv(self._precision(np.ones(len(self.measurements), dtype=bool)))))
        return dict(zip(self.names, map(float, deviations), strict=True))

    def step(self, seen: Vector) -> Vector:
        """The change that the seen measurements ask for."""
        slopes = self.slopes[seen]
        found: Vector = np.linalg.solve(
            self._precision(seen), slopes.T @ self.rest[seen] / self.noise**2 - self.at / PRIOR**2
        )
        return found

    def held_out(self) -> Vector:
        """The relative error of each measurement, with a fit that did not see its group."""
        names = dict.fromkeys(one.group for one in self.measurements)
        groups = {group: index % GROUPS for index, group in enumerate(names)}
        of = np.array([groups[one.group] for one in self.measurements])
        if len(groups) < GROUPS:
            of = np.arange(len(of)) % GROUPS  # too few builds to leave some out
        found = np.zeros(len(of))
        for number in sorted(set(groups.values())):
            record = with_numbers(self.parameters, self.values(self.at + self.step(of != number)))
            for index, one in enumerate(self.measurements):
                if of[index] == number:
                    found[index] = one.estimate(record) / one.microseconds - 1
        return found

    def _precision(self, seen: Vector) -> Vector:
        slopes = self.slopes[seen]
        found: Vector = slopes.T @ slopes / self.noise**2 + np.eye(len(self.names)) / PRIOR**2
        return found

    def _look(self) -> None:
        """Find estimates and derivatives where the fit is."""
        here = self._estimated(self.at)
        self.rest = np.log([one.microseconds for one in self.measurements]) - here
        self.slopes = np.zeros((len(self.measurements), len(self.names)))
        known = numbers(self.parameters)
        for index, name in enumerate(self.names):
            # A count changes by whole numbers, so its step must be one.
            step = max(STEP, math.log1p(4 / known[name])) if isinstance(known[name], int) else STEP
            moved = self.at.copy()
            moved[index] += step
            self.slopes[:, index] = (self._estimated(moved) - here) / step

    def _estimated(self, at: Vector) -> Vector:
        record = with_numbers(self.parameters, self.values(at))
        return np.log([one.estimate(record) for one in self.measurements])


def _error_factors(
    parameters: Any, measurements: Sequence[Measurement], held_out: Vector
) -> dict[str, FittedParameter]:
    """The model's stated errors, by computation type: the largest of a latency that was left out, and `LEAST_ERROR`."""
    known, found = numbers(parameters), {}
    for precision in sorted({one.precision for one in measurements}):
        errors = [abs(error) for one, error in zip(measurements, held_out, strict=True) if one.precision == precision]
        name = f"error_factors.{precision}"
        if name in known and len(errors) >= LEAST_MEASUREMENTS:
            largest = max(*errors, LEAST_ERROR)
            found[name] = FittedParameter(math.ceil(100 * (1 + largest) - 1e-6) / 100, None, len(errors))
    return found
