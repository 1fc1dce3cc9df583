"""Observers of engine runs: plugins, and profilers of layer times, TensorRT's `IProfiler`.

Times are measured on this machine's CPU while it emulates the device. They do not indicate the speed of the device.
"""

from __future__ import annotations

import abc
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from dryfit.attrs_classes import frozen
from dryfit.network.tensor import Shape
from dryfit.plugins.contributions import RunObserver


class Profiler(abc.ABC):
    """Receives the host time of each engine layer, once per run.

    A fused group is one engine layer, named by joining the names of its layers. Layers whose result follows from the
    shapes (constants, shape computations) do not run and are not reported.
    """

    @abc.abstractmethod
    def report_layer_time(self, layer_name: str, ms: float) -> None:
        """Called with the host time of an engine layer, in ms."""


def percentile(times: Sequence[float], percent: float) -> float:
    """Return the least of the times that `percent` of all do not exceed: the nearest rank, one of the times itself.

    With fewer than a hundred times, the 99th percentile is the longest.

    Example:
        >>> percentile([0.3, 0.1, 0.2], 50)
        0.2
    """
    ordered = sorted(times)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


class LayerTimes(Profiler):
    """Collects the layer times of all runs.

    Attributes:
        milliseconds: time of each run by engine layer name, in the order in which layers were first reported.

    Example:
        >>> times = LayerTimes()
        >>> times.report_layer_time("conv1 + relu1", 0.5)
        >>> times.report_layer_time("conv1 + relu1", 0.3)
        >>> times.medians()
        {'conv1 + relu1': 0.4}
    """

    def __init__(self) -> None:
        self.milliseconds: dict[str, list[float]] = {}

    def report_layer_time(self, layer_name: str, ms: float) -> None:
        """Record the time."""
        self.milliseconds.setdefault(layer_name, []).append(ms)

    def medians(self) -> dict[str, float]:
        """Return the median time by engine layer name."""
        from statistics import median

        return {name: median(times) for name, times in self.milliseconds.items()}

    def percentiles(self, percent: float) -> dict[str, float]:
        """Return a percentile of the times by engine layer name."""
        return {name: percentile(times, percent) for name, times in self.milliseconds.items()}

    def trtexec_profile(self) -> list[dict[str, Any]]:
        """Return the times in the form of `trtexec --exportProfile`, which the TensorRT engine explorer reads.

        The first record is the number of runs; the others are engine layers, with times in ms and their share in %.
        """
        from statistics import fmean, median

        runs = max((len(times) for times in self.milliseconds.values()), default=0)
        total = sum(map(sum, self.milliseconds.values()))
        return [
            {"count": runs},
            *(
                {
                    "name": name,
                    "timeMs": sum(times),
                    "averageMs": fmean(times),
                    "medianMs": median(times),
                    "percentage": 100 * sum(times) / total if total else 0.0,
                }
                for name, times in self.milliseconds.items()
            ),
        ]

    def total(self) -> float:
        """Return the sum of the medians: approximately the time of one run in ms."""
        return sum(self.medians().values())


@frozen
class LayerSpan:
    """When an engine layer ran on this machine.

    Attributes:
        layer: name of the engine layer.
        begin, end: in seconds of `time.perf_counter`.
    """

    layer: str
    begin: float
    end: float


class LayerSpans(LayerTimes):
    """Collects when each layer ran, in addition to the times; a context reports to it during the run.

    Attributes:
        spans: one for each time that a layer ran, in order.

    Example:
        >>> context.profiler = LayerSpans()
        >>> outputs = context.run({"x": np.zeros((1, 3, 8, 8), np.float32)})
        >>> len(context.profiler.spans) == len(context.profiler.milliseconds)
        True
    """

    def __init__(self) -> None:
        super().__init__()
        self.spans: list[LayerSpan] = []

    def report_layer_span(self, layer_name: str, seconds: float) -> None:
        """Record that a layer, which took so many seconds, ends now."""
        end = time.perf_counter()
        self.spans.append(LayerSpan(layer_name, end - seconds, end))


@contextmanager
def watched_run(
    observer: RunObserver, input_shapes: Mapping[str, Shape], layer_seconds: Mapping[str, float]
) -> Iterator[None]:
    """Notify an observer of a run that happens inside this context, including the end of a run that raises.

    Args:
        observer: plugin observer, which knows whether layer times are requested.
        input_shapes: shape by input name.
        layer_seconds: seconds by engine layer, filled by the run; empty if layers are not timed.
    """
    observer.run_started(dict(input_shapes))
    started = time.perf_counter()
    try:
        yield
    finally:
        milliseconds = (time.perf_counter() - started) * 1e3
        for layer, seconds in layer_seconds.items():
            observer.layer_finished(layer, seconds * 1e3)
        observer.run_finished(milliseconds)
