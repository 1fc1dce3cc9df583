"""TensorRT's legacy calibrator: a quantile of the magnitudes, or where a line fitted to their tail ends.

TensorRT documents the two parameters and their purpose, but not its formulas. Only one formula is possible for the
quantile; the regression is ours.
"""

from __future__ import annotations

import numpy as np

from dryfit.errors import CalibrationError
from dryfit.quantization.calibrator import Calibrator, Solution
from dryfit.quantization.histogram import Counts, Histogram
from dryfit_plugins.calibrators.entropy2 import natural_logarithm
from dryfit_plugins.calibrators.percentile import quantile as quantile_of


def solve(histogram: Histogram, *, quantile: float = 0.9999, regression_cutoff: float = 1.0) -> Solution:
    """The range to the quantile or, with a cutoff below 1, to the region maximum that the regression finds.

    Args:
        histogram: of the tensor.
        quantile: share of the magnitudes that the range covers, from 0 to 1.
        regression_cutoff: share of the largest magnitude up to which the regression is fitted, from 0 to 1. 1 disables
            the regression.

    Raises:
        CalibrationError: a parameter is outside 0 to 1.
    """
    for name, value in (("quantile", quantile), ("regression_cutoff", regression_cutoff)):
        if not 0.0 <= value <= 1.0:
            raise CalibrationError(
                f"The legacy calibrator's {name} must be between 0 and 1",
                where=f"tensor {histogram.tensor!r}",
                found=value,
                allowed="0 to 1",
                remedy="Use a fraction, such as 0.9999",
            )
    if regression_cutoff == 1.0:
        return Solution.of_threshold(quantile_of(histogram, quantile), method="quantile", quantile=quantile)
    counts = histogram.counts
    counts[0] -= histogram.zeros
    kept = region_maximum(counts, regression_cutoff)
    if kept is None:
        return Solution.of_threshold(histogram.magnitude, method="largest", regression_cutoff=regression_cutoff)
    threshold = min(kept * histogram.bin_width, histogram.magnitude)
    return Solution.of_threshold(threshold, method="regression", regression_cutoff=regression_cutoff)


def region_maximum(counts: Counts, cutoff: float) -> float | None:
    """Where the logarithm of the counts, taken as a line, reaches the count 1; None where no line falls.

    The line is that of least squares through the logarithms of the bins that are not empty, up to the cutoff.

    Args:
        counts: int64[bins], zeros left out.
        cutoff: share of the used bins that are looked at.

    Returns:
        A number of bins, the cutoff's at least.
    """
    used = counts.nonzero()[0]
    looked_at = used[used < cutoff * (used[-1] + 1)] if used.size else used
    if looked_at.size < 2:
        return None
    places = looked_at + 0.5
    heights = natural_logarithm(counts[looked_at])
    centre = places.sum() / places.size
    slope = _sum(heights * (places - centre)) / _sum((places - centre) ** 2)
    if slope >= 0.0:
        return None
    level = _sum(heights) / heights.size
    return max(float(centre - level / slope), cutoff * float(used[-1] + 1))


def _sum(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    """The sum in this order on every machine."""
    return float(np.cumsum(values)[-1])


CALIBRATOR = Calibrator(
    name="legacy",
    title="a quantile, or a regression of the tail",
    solve=solve,
    before_fusion=False,
    source="TensorRT's header of IInt8LegacyCalibrator; the regression is our choice",
)
