"""The search for the least squared error against the definition, bin by bin."""

import numpy as np
import pytest

from dryfit.quantization.histogram import BINS, Histogram
from dryfit.testing.solver_checks import DISTRIBUTIONS
from dryfit_plugins.calibrators.mean_squared_error import CALIBRATOR, squared_errors


def errors_by_definition(counts, candidates):
    """Each bin's middle rounded to a step, saturated, compared with itself."""
    middles = np.arange(counts.size) + 0.5
    found = []
    for candidate in candidates:
        step = (candidate + 0.5) / 127
        quantized = np.minimum(np.round(middles / step), 127) * step
        found.append((counts * (quantized - middles) ** 2).sum())
    return np.array(found)


def histogram_of(values):
    histogram = Histogram("x")
    histogram.update(values.astype(np.float32), "s")
    return histogram


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_each_error_is_that_of_the_definition_and_the_same_candidate_wins(name):
    values = np.abs(DISTRIBUTIONS[name](np.random.default_rng(8), 30_000))
    counts = np.bincount(np.minimum((values * (BINS / values.max())).astype(int), BINS - 1), minlength=BINS)
    counts[0] = 0
    candidates, found = squared_errors(counts)
    expected = errors_by_definition(counts, candidates)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-6)
    assert expected[found.argmin()] <= expected.min() * (1 + 1e-9) + 1e-6


BEST = {"gaussian": (3.880, 40.62), "laplace": (9.715, 35.48)}
"""Threshold and decibels with the least error, measured on 2^20 other values."""


def test_thresholds_are_those_measured_elsewhere():
    random = np.random.default_rng(1)
    for name, values in (("gaussian", random.standard_normal(1 << 20)), ("laplace", random.laplace(size=1 << 20))):
        threshold = CALIBRATOR.solution(histogram_of(values)).dynamic_range.threshold
        scale = threshold / 127
        noise = np.clip(np.round(values / scale), -128, 127) * scale - values
        decibels = 10 * np.log10((values**2).sum() / (noise**2).sum())
        assert threshold == pytest.approx(BEST[name][0], rel=0.03)
        assert decibels == pytest.approx(BEST[name][1], abs=0.05)


def test_zeros_cost_nothing():
    values = np.random.default_rng(0).standard_normal(10_000)
    padded = np.concatenate([values, np.zeros(90_000)])
    one, other = (CALIBRATOR.solution(histogram_of(found)) for found in (values, padded))
    assert one.dynamic_range == other.dynamic_range
    assert one.details["mean_squared_error"] == pytest.approx(10 * other.details["mean_squared_error"])


def test_values_in_fewer_than_128_bins_keep_their_largest():
    histogram = histogram_of(np.array([2.0**-125, 2.0**-126]))
    assert CALIBRATOR.solution(histogram).dynamic_range.threshold == 2.0**-125
