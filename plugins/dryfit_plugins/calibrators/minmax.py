"""The calibrator that saturates nothing: the range reaches to the largest magnitude."""

from __future__ import annotations

from dryfit.quantization.calibrator import Calibrator, Solution
from dryfit.quantization.histogram import Histogram


def solve(histogram: Histogram) -> Solution:
    """The range from minus to plus the largest magnitude."""
    return Solution.of_threshold(histogram.magnitude)


CALIBRATOR = Calibrator(
    name="minmax",
    title="the largest magnitude",
    solve=solve,
    source="TensorRT 8 developer guide, IInt8MinMaxCalibrator",
)
