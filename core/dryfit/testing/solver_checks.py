"""Whether a calibrator's solver gives usable ranges, the same ones each time, and leaves the state as it is.

Each check returns what is wrong, one sentence a problem.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np

from dryfit.errors import DryfitError
from dryfit.network.network import Network
from dryfit.plugins import calibrators
from dryfit.quantization.calibration import calibrate_ranges
from dryfit.quantization.calibrator import Calibrator, Solution
from dryfit.testing.collector_checks import TENSOR, Named, collected, named
from dryfit.testing.distributions import Distribution, samples_of


def installation_problems(calibrator: Calibrator) -> list[str]:
    """Why the calibrator is not found by its name."""
    try:
        found = calibrators.calibrator(calibrator.name)
    except DryfitError as error:
        return [str(error)]
    return [] if found == calibrator else [f"the entry point {calibrator.name!r} names another calibrator"]


def range_problems(calibrator: Calibrator, samples: Named, may_exceed_values: bool) -> list[str]:
    """A range that is missing or wider than the values."""
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
    """Factors, powers of two, by which the range does not grow as the values do."""
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
    """Another answer the second time, a state that solving changed, details that no report can hold."""
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
    """Exceptions, ranges, or no reasons, where there is nothing but zeros, or no value at all."""
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
    """Why a calibrator that brings its samples cannot calibrate a network, or not twice alike."""
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
