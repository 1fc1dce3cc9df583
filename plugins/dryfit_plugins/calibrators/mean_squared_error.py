"""The calibrator that minimizes the mean squared error between the values and their INT8 quantization."""

from __future__ import annotations

from typing import Any

import numpy as np

from dryfit.quantization.calibrator import Calibrator, Solution
from dryfit.quantization.histogram import Counts, Histogram

LARGEST_LEVEL = 127
"""The largest magnitude of INT8 that both signs have."""

Floats = np.ndarray[Any, np.dtype[np.float64]]


def solve(histogram: Histogram) -> Solution:
    """The range with the smallest error; ties go to the smallest range.

    A bin's values are taken as its middle, zeros as zero. The threshold is a middle of a bin, from the 128th on: below,
    steps are finer than bins, which then say nothing. Values that fill fewer bins keep their largest magnitude.
    """
    counts = histogram.counts
    counts[0] -= histogram.zeros
    candidates, errors = squared_errors(counts)
    if not candidates.size:
        return Solution.of_threshold(histogram.magnitude)
    best = int(errors.argmin())
    threshold = min((int(candidates[best]) + 0.5) * histogram.bin_width, histogram.magnitude)
    mean = float(errors[best]) * histogram.bin_width * histogram.bin_width / histogram.count
    return Solution.of_threshold(
        threshold, mean_squared_error=mean, saturated=int(counts[candidates[best] + 1 :].sum())
    )


def squared_errors(counts: Counts) -> tuple[Counts, Floats]:
    """The bins whose middles may be the threshold, and for each the sum of squared errors in squared widths of a bin.

    Between two roundings all values become one level k: with the sums of n, x and x^2 over these bins the error is
    `sum x^2 - 2 k s sum x + (k s)^2 sum n`, for a step s. So a candidate costs as many steps as there are levels.

    Args:
        counts: int64[bins], zeros left out.

    Returns:
        int64[candidates], from 128 to the last bin that is not empty, and float64[candidates].
    """
    used = counts.nonzero()[0]
    last = int(used[-1]) if used.size else 0
    candidates = np.arange(LARGEST_LEVEL + 1, last + 1)
    if not candidates.size:
        return candidates, np.empty(0)
    middles = np.arange(counts.size) + 0.5
    sums = [np.concatenate([[0.0], np.cumsum(counts * middles**power)]) for power in range(3)]
    steps = (candidates + 0.5) / LARGEST_LEVEL
    errors = np.zeros(candidates.size)
    begin = np.zeros(candidates.size, np.intp)
    for level in range(LARGEST_LEVEL + 1):
        # The first bin whose middle is at the next rounding or beyond it; what lies beyond the last level saturates.
        end = np.minimum(np.ceil((level + 0.5) * steps - 0.5), counts.size).astype(np.intp)
        if level == LARGEST_LEVEL:
            end = np.full_like(end, counts.size)
        value = level * steps
        many, first, second = (one[end] - one[begin] for one in sums)
        errors += second - 2.0 * value * first + value * value * many
        begin = end
    return candidates, errors


CALIBRATOR = Calibrator(
    name="mean-squared-error",
    title="minimum mean squared error",
    solve=solve,
    source="our choice; the criterion of pytorch-quantization's and OpenVINO's calibration",
)
