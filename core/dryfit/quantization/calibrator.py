"""What a calibrator is: a collector that sees the values of a tensor, and a solver that finds a range from its state.

The two are apart, so that one pass over the samples serves every solver that takes the same state.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from dryfit.errors import DryfitError, PluginError, UnknownNameError
from dryfit.quantization.calibration_stream import CalibrationStream
from dryfit.quantization.collector import Collector
from dryfit.quantization.histogram import Histogram
from dryfit.quantization.int8_steps import DynamicRange, int8_scale


@attrs.frozen
class Solution:
    """What a solver found for one tensor.

    Attributes:
        dynamic_range: the range; None where the values have no scale, as when all are zero.
        reason: why there is none; "" where there is one.
        details: what else is worth telling, such as the divergence, for reports.
    """

    dynamic_range: DynamicRange | None
    reason: str = ""
    details: Mapping[str, float | str] = attrs.field(factory=dict)

    @classmethod
    def of_threshold(cls, threshold: float, **details: float | str) -> Solution:
        """The range from `-threshold` to `threshold`, or the reason why that is none."""
        if threshold == 0:
            return cls(None, "every value is zero", details)
        if int8_scale(threshold) == 0.0:
            return cls(None, f"{threshold} / 127 is too small for a binary32 scale", details)
        if not math.isfinite(int8_scale(threshold)):
            return cls(None, f"{threshold} / 127 is too large for a binary32 scale", details)
        return cls(DynamicRange(-threshold, threshold), "", details)


Solver = Callable[..., Solution]
"""From a collector, and options by keyword, to a solution. It is a pure function: the same state, the same solution."""


@attrs.frozen(kw_only=True)
class Calibrator:
    """A way to find dynamic ranges, found by name in the entry-point group `dryfit.calibrators`.

    Attributes:
        name: what users write; that of the entry point.
        title: in a few words.
        solve: from the collector of a tensor to its range. Its keyword-only parameters are the calibrator's options.
        collector: the class whose states `solve` takes. By default the histogram, whose state is shared by all solvers
            that take it, and is the same for any order and split of the samples.
        before_fusion: whether the ranges are meant for the tensors of the network as the user built it; otherwise
            for those that are left after layers were fused.
        stream: makes an object that brings samples of its own, with TensorRT's calibrator interface; None where the
            user brings them.
        options: values of options that differ from the solver's defaults.
        version: changes whenever the same state gives another range.
        source: where the method comes from.

    Raises:
        PluginError: a field is of the wrong kind.

    Example:
        >>> def half(histogram):
        ...     return Solution.of_threshold(histogram.magnitude / 2)
        >>> Calibrator(name="half", title="Half of the largest magnitude", solve=half).options
        {}
    """

    name: str
    title: str
    solve: Solver
    collector: type[Collector] = Histogram
    before_fusion: bool = True
    stream: Callable[[], CalibrationStream] | None = None
    options: Mapping[str, Any] = attrs.field(factory=dict)
    version: str = "1"
    source: str = ""

    def __attrs_post_init__(self) -> None:
        if not (isinstance(self.collector, type) and issubclass(self.collector, Collector)):
            raise PluginError(
                "The collector of a calibrator must be a class",
                where=f"calibrator {self.name!r}",
                found=repr(self.collector),
                allowed="a subclass of dryfit.quantization.collector.Collector",
                remedy="Pass the class",
            )
        if not callable(self.solve):
            raise PluginError(
                "`solve` of a calibrator must be a function",
                where=f"calibrator {self.name!r}",
                found=repr(self.solve),
                remedy="Pass a function",
            )

    @property
    def option_defaults(self) -> dict[str, Any]:
        """Option to the value that the solver takes without one."""
        parameters = inspect.signature(self.solve).parameters.values()
        return {one.name: one.default for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY}

    def with_options(self, **options: Any) -> Calibrator:
        """The same calibrator with other values of options.

        Raises:
            UnknownNameError: the solver has no such option.
        """
        known = self.option_defaults
        for name in options:
            if name not in known:
                raise UnknownNameError("option", name, known, where=f"calibrator {self.name!r}")
        return attrs.evolve(self, options={**self.options, **options})

    def solution(self, collector: Collector) -> Solution:
        """The range that the calibrator finds for what a collector has seen.

        Raises:
            PluginError: the state is that of another collector, or the solver fails or gives something else.
        """
        where = f"calibrator {self.name!r}, tensor {collector.tensor!r}"
        if not isinstance(collector, self.collector):
            raise PluginError(
                "The state does not match the calibrator",
                where=where,
                found=type(collector).__name__,
                allowed=self.collector.__name__,
                remedy="Collect with this calibrator",
            )
        try:
            found = self.solve(collector, **self.options)
        except DryfitError:
            raise
        except Exception as error:
            raise PluginError(
                "The solver failed",
                where=where,
                found=f"{type(error).__name__}: {error}",
                remedy="Fix the calibrator, or report it to its authors",
            ) from error
        if not isinstance(found, Solution):
            raise PluginError(
                "A solver must return a Solution",
                where=where,
                found=type(found).__name__,
                remedy="Fix the calibrator, or report it to its authors",
            )
        return found
