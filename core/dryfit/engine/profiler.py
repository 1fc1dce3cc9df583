"""Who watches the runs of an engine: plugins, and profilers with the time of each layer, TensorRT's `IProfiler`.

Times are measured on this machine's CPU while it emulates the device. They say nothing of the device's speed.
"""

from __future__ import annotations

import abc
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from dryfit.network.tensor import Shape
from dryfit.plugins.contributions import RunObserver


class Profiler(abc.ABC):
    """Is told the host's time of each engine layer, once a run.

    A fused group is one engine layer, under the joined name of its layers. Layers whose result was known when the
    shapes were (constants, shape computations) do not run and are not reported.
    """

    @abc.abstractmethod
    def report_layer_time(self, layer_name: str, ms: float) -> None:
        """An engine layer took `ms` milliseconds of the host's time."""


class LayerTimes(Profiler):
    """Collects the times of all runs.

    Attributes:
        milliseconds: engine layer name to the time of each run, in the order in which layers were first reported.

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
        """Keep the time."""
        self.milliseconds.setdefault(layer_name, []).append(ms)

    def medians(self) -> dict[str, float]:
        """Engine layer name to the median of its times."""
        from statistics import median

        return {name: median(times) for name, times in self.milliseconds.items()}

    def total(self) -> float:
        """The sum of the medians: about the milliseconds of one run."""
        return sum(self.medians().values())


@contextmanager
def watched_run(
    observer: RunObserver, input_shapes: Mapping[str, Shape], layer_seconds: Mapping[str, float]
) -> Iterator[None]:
    """Tell an observer of one run, which happens inside; also of the end of one that raises.

    Args:
        observer: of the facade, which knows who wants the times of layers.
        input_shapes: input name to shape.
        layer_seconds: engine layer to the seconds that it took, filled by the run; empty where layers are not timed.
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
