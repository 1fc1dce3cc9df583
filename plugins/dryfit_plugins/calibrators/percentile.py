"""Calibrators based on quantiles: a given share of the values saturates, or none."""

from __future__ import annotations

import numpy as np

from dryfit.errors import CalibrationError
from dryfit.quantization.calibrator import Calibrator, Solution
from dryfit.quantization.histogram import Histogram


def solve(histogram: Histogram, *, percentile: float = 99.99) -> Solution:
    """The range below which this percentage of the magnitudes lies.

    Args:
        histogram: of the tensor.
        percentile: from 0, not included, to 100, which is the largest magnitude.

    Raises:
        CalibrationError: the percentile is out of range.
    """
    if not 0.0 < percentile <= 100.0:
        raise CalibrationError(
            "The percentile must be greater than 0 and at most 100",
            where=f"tensor {histogram.tensor!r}",
            found=percentile,
            allowed="greater than 0, at most 100",
            remedy="Use a percentage, such as 99.99",
        )
    threshold = quantile(histogram, percentile / 100.0)
    return Solution.of_threshold(threshold, percentile=percentile)


def quantile(histogram: Histogram, share: float) -> float:
    """The upper end of the bin in which the share of all magnitudes is reached; the largest magnitude at most.

    Zeros count as magnitudes. The first bin with a value other than zero is kept in any case.
    """
    counts = histogram.counts
    below = np.cumsum(counts)
    # A percentage is no binary fraction: its last bit must not decide about a bin.
    kept = int(np.searchsorted(below, round(share * float(below[-1]), 6))) + 1
    counts[0] -= histogram.zeros
    used = counts.nonzero()[0]
    if not used.size:
        return 0.0
    return min(max(kept, int(used[0]) + 1) * histogram.bin_width, histogram.magnitude)


CALIBRATOR = Calibrator(
    name="percentile",
    title="a percentile of the magnitudes",
    solve=solve,
    source="pytorch-quantization's percentile calibration; 99.99 is its default",
)


def solve_largest(histogram: Histogram) -> Solution:
    """The range from minus to plus the largest magnitude."""
    return Solution.of_threshold(histogram.magnitude)


MINMAX = Calibrator(
    name="minmax",
    title="the largest magnitude",
    solve=solve_largest,
    source="TensorRT 8 developer guide, IInt8MinMaxCalibrator",
)
