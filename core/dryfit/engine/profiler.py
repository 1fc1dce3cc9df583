"""Time per engine layer: TensorRT's `IProfiler`.

The times are those of this machine's CPU while it emulates the device. They say nothing of the device's speed.
"""

from __future__ import annotations

import abc


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
