"""The legacy calibrator: its quantile, and a regression of tails whose end is known."""

import numpy as np
import pytest

from dryfit.errors import CalibrationError
from dryfit.quantization.histogram import BINS, Histogram
from dryfit_plugins.calibrators.legacy import CALIBRATOR, region_maximum
from dryfit_plugins.calibrators.percentile import CALIBRATOR as PERCENTILE


def histogram_of(values):
    histogram = Histogram("x")
    histogram.update(values.astype(np.float32), "s")
    return histogram


def test_with_a_cutoff_of_1_it_is_the_quantile():
    histogram = histogram_of(np.random.default_rng(0).standard_normal(50_000))
    found = CALIBRATOR.with_options(quantile=0.999).solution(histogram)
    assert found.dynamic_range == PERCENTILE.with_options(percentile=99.9).solution(histogram).dynamic_range
    assert found.details == {"method": "quantile", "quantile": 0.999}


def test_a_line_through_logarithms_ends_where_it_reaches_one():
    """Counts fall by half every 40 bins from 2^20: the line reaches 2^0 at bin 800, wherever the regression looks."""
    counts = np.zeros(BINS, np.int64)
    places = np.arange(1600)
    counts[places] = np.maximum(np.round(2.0 ** (20 - (places + 0.5) / 40)), 1)
    counts[901:] = 0
    counts[1599] = 1
    assert region_maximum(counts, 0.3) == pytest.approx(800, abs=0.5)
    assert region_maximum(counts, 0.45) == pytest.approx(800, abs=0.5)


def test_what_does_not_fall_has_no_region_maximum():
    counts = np.zeros(BINS, np.int64)
    counts[1:1500] = 7
    assert region_maximum(counts, 0.5) is None
    uniform = histogram_of(np.linspace(-1, 1, 30_001))
    found = CALIBRATOR.with_options(regression_cutoff=0.5).solution(uniform)
    assert found.dynamic_range.threshold == 1.0


@pytest.mark.parametrize("options", [{"quantile": 1.5}, {"regression_cutoff": -0.1}])
def test_parameters_outside_0_to_1_are_refused(options):
    with pytest.raises(CalibrationError, match=rf"tensor 'x'.*{next(iter(options))} must be between 0 and 1.*0 to 1"):
        CALIBRATOR.with_options(**options).solution(histogram_of(np.ones(3)))
