"""The interface of metrics: one number for the outputs of a network on all samples, larger where they are better."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.errors import ConfigError, DryfitError, PluginError
from dryfit.network.tensor import Array
from dryfit.quantization.calibration_data import user_function

Outputs = Mapping[str, Array]
"""Output name to the values of all samples, one after another along the first axis."""

REFERENCE = "reference"
LABELS = "labels"


@frozen
class Metric:
    """A metric, registered in the entry-point group `dryfit.metrics`.

    Attributes:
        name: name of the metric; the same as that of the entry point.
        title: short description.
        measure: function from outputs and, by `against`, FP32 outputs or labels, to a number: the larger, the better.
        against: `reference` for the outputs in FP32, `labels` for what the user says of the samples.
        unit: `%` for shares of 100, `dB`, or "".

    Example:
        >>> def brightness(outputs, labels):
        ...     return float(outputs["y"].mean())
        >>> Metric(name="brightness", title="mean of y", measure=brightness, against="labels").text(0.5)
        '0.5'
    """

    name: str
    title: str
    measure: Callable[[Outputs, Any], float]
    against: str = attrs.field(default=REFERENCE, validator=attrs.validators.in_((REFERENCE, LABELS)))
    unit: str = ""

    def value(self, outputs: Outputs, reference: Outputs, labels: Any = None) -> float:
        """Return the metric.

        Args:
            outputs: what is judged.
            reference: the outputs in FP32.
            labels: what the user says of the samples; None for nothing.

        Raises:
            PluginError: The function fails, or gives no number.
        """
        try:
            found = float(self.measure(outputs, reference if self.against == REFERENCE else labels))
        except DryfitError:
            raise
        except Exception as error:
            raise PluginError(
                "The metric failed",
                where=f"metric {self.name!r}",
                found=f"{type(error).__name__}: {error}",
                remedy="Fix the metric, or check that its labels fit the outputs",
            ) from error
        if np.isnan(found):
            raise PluginError(
                "A metric must be a number", where=f"metric {self.name!r}", found=found, remedy="Fix the metric"
            )
        return found

    def text(self, value: float) -> str:
        """Format a value with its unit."""
        if self.unit == "%":
            return f"{value:.1f} %"
        return f"{value:.1f} {self.unit}" if self.unit else f"{value:.6g}"


def metric_of_function(place: str) -> Metric:
    """Return the metric of a user's function `metric(outputs, labels)`.

    Args:
        place: `module:function` or `folder/file.py:function`.

    Raises:
        CalibrationError: There is no such module, file or function.
    """
    function = user_function(place, "metrics")
    return Metric(name=place, title="a function of the user", measure=function, against=LABELS)


def labels_of(labels: Any, samples: int, available: int) -> Any:
    """Return the labels of the first samples.

    Args:
        labels: an entry per sample.
        samples: number of samples that are used.
        available: number of samples that there are.

    Raises:
        ConfigError: There are neither as many labels as samples are used, nor as there are.
    """
    count = len(labels) if isinstance(labels, Sequence) or np.ndim(labels) else None
    if count not in (samples, available):
        raise ConfigError(
            "There must be one label for each sample",
            where="--labels",
            found="no list" if count is None else count,
            allowed=samples if samples == available else f"{samples}, or {available} for all",
            remedy="Provide one label per sample, in sample order",
        )
    return labels[:samples]


def worst_sqnr_db(exact: Sequence[Mapping[str, Array]], found: Sequence[Mapping[str, Array]]) -> float:
    """Return the SQNR of the output that suffers most, in dB; infinity where nothing differs.

    Args:
        exact: FP32 outputs of each sample.
        found: outputs to judge, in the same order.
    """
    worst = np.inf
    for name in exact[0]:
        signal = sum(float((one[name].astype(np.float64) ** 2).sum()) for one in exact)
        noise = sum(
            float(((other[name].astype(np.float64) - one[name]) ** 2).sum())
            for one, other in zip(exact, found, strict=True)
        )
        if noise:
            worst = min(worst, 10 * np.log10(signal / noise) if signal else -np.inf)
    return float(worst)
