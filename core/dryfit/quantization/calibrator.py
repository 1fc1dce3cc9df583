"""The interface of calibrators: a collector gathers the values of a tensor, a solver computes a range from its state.

The two are separate, so that one pass over the samples serves every solver that uses the same state.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from dryfit.attrs_classes import frozen
from dryfit.errors import CalibrationError, DryfitError, PluginError, UnknownNameError
from dryfit.quantization.calibration_stream import CalibrationStream
from dryfit.quantization.collector import Collector
from dryfit.quantization.histogram import Histogram
from dryfit.quantization.int8_steps import DynamicRange, int8_scale


@frozen
class Solution:
    """Result of a solver for one tensor.

    Attributes:
        dynamic_range: the range; None if the values have no scale, as when all are zero.
        reason: why there is no range; "" if there is one.
        details: additional values for reports, such as the divergence.
    """

    dynamic_range: DynamicRange | None
    reason: str = ""
    details: Mapping[str, float | str] = attrs.field(factory=dict)

    @classmethod
    def of_threshold(cls, threshold: float, **details: float | str) -> Solution:
        """Return the range from `-threshold` to `threshold`, or the reason why it is not valid."""
        if threshold == 0:
            return cls(None, "every value is zero", details)
        if int8_scale(threshold) == 0.0:
            return cls(None, f"{threshold} / 127 is too small for a binary32 scale", details)
        if not math.isfinite(int8_scale(threshold)):
            return cls(None, f"{threshold} / 127 is too large for a binary32 scale", details)
        return cls(DynamicRange(-threshold, threshold), "", details)


Solver = Callable[..., Solution]
"""Function from a collector, and options by keyword, to a solution. It must be pure: the same state gives the same
solution."""


@frozen(kw_only=True)
class Calibrator:
    """A method that computes dynamic ranges, registered in the entry-point group `dryfit.calibrators`.

    Attributes:
        name: name of the calibrator; the same as that of the entry point.
        title: short description.
        solve: function from the collector of a tensor to its range. Its keyword-only parameters are the options of the
            calibrator.
        collector: class whose states `solve` accepts. Default: the histogram, whose state all solvers that use it
            share, and which does not depend on the order or the splitting of the samples.
        before_fusion: whether the ranges apply to the tensors of the network as the user built it; otherwise, to the
            tensors that remain after layers are fused.
        stream: function that creates an object that provides its own samples, with TensorRT's calibrator interface.
            None: the user provides the samples.
        options: values of options that differ from the solver's defaults.
        version: version; must change whenever the same state gives a different range.
        source: source of the method.
        judges_outputs: whether `solve` is only where the search begins, and ranges are chosen by what they do to the
            outputs of the network; only `dryfit.calibrate` can do that.

    Raises:
        PluginError: A field has the wrong type.

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
    judges_outputs: bool = False

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
        """Option name to the solver's default value."""
        parameters = inspect.signature(self.solve).parameters.values()
        return {one.name: one.default for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY}

    def with_options(self, **options: Any) -> Calibrator:
        """Return the calibrator with other option values.

        Raises:
            UnknownNameError: The solver has no such option.
        """
        known = self.option_defaults
        for name in options:
            if name not in known:
                raise UnknownNameError("option", name, known, where=f"calibrator {self.name!r}")
        return attrs.evolve(self, options={**self.options, **options})

    def solution(self, collector: Collector) -> Solution:
        """Return the range that the calibrator computes from the state of a collector.

        Raises:
            PluginError: The state belongs to another collector, or the solver fails or returns an object of another
                type.
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


def require_calibrator(value: object) -> None:
    """Reject an object that is not a calibrator, such as samples given in its place.

    Raises:
        CalibrationError: The object is of another type.
    """
    if not isinstance(value, Calibrator):
        raise CalibrationError(
            "The calibrator must be a Calibrator",
            found=type(value).__name__,
            allowed='dryfit.Calibrator(...), or where the function takes names, a name such as "entropy2"',
            remedy="Give the calibrator before the samples; dryfit.calibrate takes a model and a calibrator's name",
        )
