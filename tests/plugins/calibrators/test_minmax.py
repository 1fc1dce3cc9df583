"""The range reaches to the largest magnitude, whatever its sign."""

import pytest

from dryfit.quantization.histogram import Histogram
from dryfit_plugins.calibrators.percentile import MINMAX


@pytest.mark.parametrize(("values", "threshold"), [([-3.0, 2.0], 3.0), ([0.0, 2.64], 2.64), ([-1e-30], 1e-30)])
def test_the_range_is_the_largest_magnitude(values, threshold):
    histogram = Histogram("x")
    histogram.update(values, "s")
    found = MINMAX.solution(histogram).dynamic_range
    assert (found.minimum, found.maximum) == (-threshold, threshold)
