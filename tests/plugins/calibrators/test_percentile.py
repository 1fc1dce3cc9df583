"""Percentiles against numpy's quantiles of the values themselves."""

import numpy as np
import pytest

from dryfit.errors import CalibrationError
from dryfit.quantization.histogram import Histogram
from dryfit.testing.solver_checks import DISTRIBUTIONS
from dryfit_plugins.calibrators.percentile import CALIBRATOR, quantile

SHARES = (0.5, 0.9, 0.999, 0.9999, 1.0)


def histogram_of(values):
    histogram = Histogram("x")
    histogram.update(values.astype(np.float32), "s")
    return histogram


@pytest.mark.parametrize("name", sorted(set(DISTRIBUTIONS) - {"mostly_zero"}))
def test_the_threshold_is_the_quantile_within_a_bin(name):
    values = np.abs(DISTRIBUTIONS[name](np.random.default_rng(3), 40_000).astype(np.float32))
    histogram = histogram_of(values)
    for share in SHARES:
        exact = np.quantile(values, share, method="inverted_cdf")
        assert exact <= quantile(histogram, share) <= min(exact + histogram.bin_width, values.max()), share


@pytest.mark.parametrize(("percentile", "threshold"), [(99.9, 3.301), (99.99, 3.897), (99.999, 4.327)])
def test_thresholds_of_a_bell_curve_are_those_measured_elsewhere(percentile, threshold):
    """Source: pytorch-quantization, on 2^20 other values: of the last percentile only ten lie beyond."""
    histogram = histogram_of(np.random.default_rng(1).standard_normal(1 << 20))
    found = CALIBRATOR.with_options(percentile=percentile).solution(histogram).dynamic_range.threshold
    assert found == pytest.approx(threshold, rel=0.01)


def test_zeros_count_but_never_are_the_range():
    values = np.zeros(10_000)
    values[0] = -0.75
    assert CALIBRATOR.with_options(percentile=50.0).solution(histogram_of(values)).dynamic_range.threshold == 0.75


@pytest.mark.parametrize("percentile", [0.0, -1.0, 100.1, float("nan")])
def test_what_is_no_percentile_is_refused(percentile):
    with pytest.raises(CalibrationError, match=r"tensor 'x'.*greater than 0, at most 100"):
        CALIBRATOR.with_options(percentile=percentile).solution(histogram_of(np.ones(3)))
