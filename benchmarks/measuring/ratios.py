"""How speeds are compared: all sides take turns in one process, and each turn's times are divided by each other.

What slows the machine down for a while slows down all sides of a turn, so that a ratio is steadier than the times it
comes from. A side's time in a turn is the best of three, after runs that warm the caches.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Measure = Callable[[], float]
"""Runs once and tells the seconds that it took."""

PAUSE_SECONDS = 0.05
"""Before each side's turn: until then the threads of the one before have stopped looking for work. Those of ONNX
Runtime look for 39 ms on an AMD EPYC (Zen 4), so that a side whose turn began sooner would have one processor less."""
SLOW_SECONDS = 1.0
"""A side whose run takes longer is run once a turn, without a run to warm up."""


def timed(run: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> Measure:
    """The time of a whole run; by `time.process_time`, what it took of the processor, whatever else ran there."""

    def measure() -> float:
        start = clock()
        run()
        return clock() - start

    return measure


def best_of_three(measure: Measure, pause: float = PAUSE_SECONDS) -> float:
    """Seconds of one run, when the other sides' threads are at rest and caches are warm."""
    time.sleep(pause)
    start, first = time.perf_counter(), measure()
    if first > SLOW_SECONDS:
        return first
    # Two virtual processors that were idle ran on one core at first, each at half the speed: in 4 of 20 cases, for up
    # to 115 ms.
    while time.perf_counter() - start < 2 * pause:
        measure()
    return min(measure() for _ in range(3))


def take_turns(sides: Mapping[str, Measure], rounds: int, pause: float = PAUSE_SECONDS) -> dict[str, list[float]]:
    """Each side's seconds in each of the rounds.

    Args:
        sides: name to what runs it once.
        rounds: how many turns each side gets.
        pause: seconds of rest before each turn.
    """
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, measure in sides.items():
            seconds[name].append(best_of_three(measure, pause))
    return seconds


def median_ratio(own: Sequence[float], other: Sequence[float]) -> float:
    """How many times faster `own` is than `other`: the median over the turns. Above 1, `own` is faster."""
    return statistics.median(theirs / ours for ours, theirs in zip(own, other, strict=True))


def spread(own: Sequence[float], other: Sequence[float]) -> tuple[float, float]:
    """The quartiles of the ratio over the turns; the ratio itself where there are fewer than four."""
    ratios = sorted(theirs / ours for ours, theirs in zip(own, other, strict=True))
    if len(ratios) < 4:
        return ratios[0], ratios[-1]
    low, _, high = statistics.quantiles(ratios, n=4)
    return low, high


def rounds_within(seconds: float, budget: float, least: int = 3, most: int = 30) -> int:
    """How many rounds fit into a budget; at least `least`, but one where a single round takes all of it.

    Args:
        seconds: of one round.
        budget: seconds for all of them.
        least: of rounds.
        most: of rounds.
    """
    if seconds >= budget:
        return 1
    return max(least, min(most, int(budget / seconds)))


def latency_text(seconds: float) -> str:
    """A time in milliseconds."""
    return f"{1e3 * seconds:.2f} ms"
