"""Checks that a calibrator's solver gives usable, reproducible ranges, and does not modify the state.

It is tested on values of known distributions.

Each check returns the problems, one sentence per problem.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dryfit.errors import DryfitError
from dryfit.network.network import Network
from dryfit.plugins import calibrators
from dryfit.quantization.calibration import calibrate_ranges
from dryfit.quantization.calibrator import Calibrator, Solution
from dryfit.testing.collector_checks import TENSOR, Named, collected, named

Array = np.ndarray[Any, Any]
Distribution = Callable[[np.random.Generator, int], Array]
"""From a generator and a count to that many values."""


def _outliers(random: np.random.Generator, count: int) -> Array:
    values = random.standard_normal(count)
    values[:: max(count // 3, 1)] *= 40.0
    return values


def _softmax(random: np.random.Generator, count: int) -> Array:
    exponentials = np.exp(3.0 * random.standard_normal(count))
    return np.asarray(exponentials / exponentials.sum())


DISTRIBUTIONS: Mapping[str, Distribution] = {
    "gaussian": lambda random, count: random.standard_normal(count),
    "laplace": lambda random, count: random.laplace(size=count),
    "relu": lambda random, count: np.maximum(random.standard_normal(count), 0.0),
    "heavy_tails": lambda random, count: random.standard_t(3, count),
    "outliers": _outliers,
    "uniform": lambda random, count: random.random(count),
    "sigmoid": lambda random, count: 1.0 / (1.0 + np.exp(-random.standard_normal(count))),
    "softmax": _softmax,
    "image": lambda random, count: (random.integers(0, 256, count) / 255.0 - 0.406) / 0.225,
    "mostly_zero": lambda random, count: random.standard_normal(count) * (random.random(count) < 0.02) + _one(count),
    "one_value": lambda random, count: np.full(count, -0.7),
    "tiny": lambda random, count: random.standard_normal(count) * 2.0**-90,
    "huge": lambda random, count: random.standard_normal(count) * 2.0**90,
}
"""Name to distribution. Each has a value other than zero, whatever the generator."""

SAMPLE_SHAPES = ((1, 4, 16, 16), (1, 4, 8, 8), (2, 4, 16, 8), (1, 4, 1, 1), (1, 4, 32, 32), (3, 4, 8, 8))
SAMPLE_FACTORS = (0.25, 2.0**-10, 1.0, 0.5, 4.0, 1.0)
"""Samples differ in shape and in size: the first one is not the largest."""


def samples_of(distribution: Distribution, factor: float = 1.0) -> list[Array]:
    """Return float32[batch, channel, height, width] samples, the same in every run, times a factor."""
    random = np.random.default_rng(7)
    return [
        (distribution(random, int(np.prod(shape))) * (scale * factor)).astype(np.float32).reshape(shape)
        for shape, scale in zip(SAMPLE_SHAPES, SAMPLE_FACTORS, strict=True)
    ]


def _one(count: int) -> Array:
    """A single value other than zero."""
    values = np.zeros(count)
    values[count // 2] = 1.0
    return values


def installation_problems(calibrator: Calibrator) -> list[str]:
    """Return why the calibrator is not found by its name."""
    try:
        found = calibrators.calibrator(calibrator.name)
    except DryfitError as error:
        return [str(error)]
    return [] if found == calibrator else [f"the entry point {calibrator.name!r} names another calibrator"]


def range_problems(calibrator: Calibrator, samples: Named, may_exceed_values: bool) -> list[str]:
    """Return ranges that are missing or wider than the values."""
    solution = _solution(calibrator, samples)
    if isinstance(solution, str):
        return [solution]
    if solution.dynamic_range is None:
        return [f"there is no range for values other than zero: {solution.reason or 'no reason is given'}"]
    largest = max(float(np.abs(sample).max()) for _, sample in samples)
    if solution.dynamic_range.threshold > largest and not may_exceed_values:
        return [f"the range reaches to {solution.dynamic_range.threshold}, the values to {largest}"]
    return []


def scaling_problems(calibrator: Calibrator, distribution: Distribution) -> list[str]:
    """Return the factors, powers of two, by which the range does not scale with the values."""
    found = []
    plain = _solution(calibrator, named(samples_of(distribution)))
    for factor in (2.0, 0.125):
        scaled = _solution(calibrator, named(samples_of(distribution, factor)))
        ends = [
            None if isinstance(one, str) or one.dynamic_range is None else one.dynamic_range for one in (plain, scaled)
        ]
        if ends[0] is None or ends[1] is None:
            return ["there is no range to compare"]
        if (ends[0].minimum * factor, ends[0].maximum * factor) != (ends[1].minimum, ends[1].maximum):
            found.append(f"for {factor} times the values the range is {ends[1]}, that of the values {ends[0]}")
    return found


def purity_problems(calibrator: Calibrator, samples: Named) -> list[str]:
    """Return differing repeated results, states modified by solving, and details that no report can store."""
    collector = collected(calibrator, samples)
    before = collector.to_bytes()
    first, second = calibrator.solution(collector), calibrator.solution(collector)
    found = [] if first == second else [f"the same state gives {first}, then {second}"]
    if collector.to_bytes() != before:
        found.append("solving changes the state")
    restored = calibrator.collector.from_bytes(before, TENSOR)
    if calibrator.solution(restored) != first:
        found.append("a restored state gives another range")
    try:
        json.dumps(dict(first.details), allow_nan=False)
    except (TypeError, ValueError) as error:
        found.append(f"the details cannot be written as JSON: {error}")
    return found


def nothing_problems(calibrator: Calibrator) -> list[str]:
    """Return exceptions, ranges or missing reasons for inputs with only zeros or no values."""
    zeros = [np.zeros((2, 3), np.float32), np.full(4, -0.0, np.float32)]
    found = []
    for what, samples in (("zeros only", named(zeros)), ("no value", named([np.empty(0, np.float32)]))):
        solution = _solution(calibrator, samples)
        if isinstance(solution, str):
            found.append(f"{what}: {solution}")
        elif solution.dynamic_range is not None:
            found.append(f"{what}: there is a range, {solution.dynamic_range}")
        elif not solution.reason:
            found.append(f"{what}: no reason is given")
    return found


def stream_problems(calibrator: Calibrator, network: Callable[[], Network]) -> list[str]:
    """Return why a calibrator with its own samples cannot calibrate a network, or not reproducibly."""
    try:
        first, second = (calibrate_ranges(network(), calibrator) for _ in range(2))
    except Exception as error:  # noqa: BLE001  what a stranger's code raises is the finding
        return [f"it raises {type(error).__name__}: {error}"]
    # Scales, not ranges: the second stream may have read the cache that the first one wrote.
    scales = [
        {name: one.dynamic_range and one.dynamic_range.scale for name, one in solutions.items()}
        for solutions in (first, second)
    ]
    return [] if scales[0] == scales[1] else ["a second stream gives other scales"]


def _solution(calibrator: Calibrator, samples: Named) -> Solution | str:
    """What the calibrator finds, or the exception as text."""
    try:
        return calibrator.solution(collected(calibrator, samples))
    except Exception as error:  # noqa: BLE001  what a stranger's code raises is the finding
        return f"it raises {type(error).__name__}: {error}"
