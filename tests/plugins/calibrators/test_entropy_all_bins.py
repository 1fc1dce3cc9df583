"""The entropy search of the slides, against a loop that follows their pseudocode line by line."""

import math

import numpy as np
import pytest

from dryfit.plugins.calibrators import calibrator
from dryfit.quantization.histogram import Histogram
from dryfit_plugins.calibrators.entropy2 import ENTROPY_ALL_BINS, solve_with_all_bins

COUNT = 20_000


def histogram_of(values):
    histogram = Histogram("x")
    histogram.update(values.astype(np.float32), "s")
    return histogram


def quantized(bins, levels=128):
    """The bins in so many levels, expanded again: each level shared out among its bins that are not empty."""
    level_of, used = np.arange(len(bins)) * levels // len(bins), bins > 0
    sums, counts = (np.bincount(level_of, weights, levels) for weights in (bins, used))
    return np.where(used, sums[level_of] / np.maximum(counts, 1)[level_of], 0.0)


def divergence(p, q):
    p, q = p / p.sum(), q / q.sum()
    kept = p > 0
    with np.errstate(divide="ignore"):
        return math.fsum(p[kept] * np.log(p[kept] / q[kept]))


def threshold_by_the_slides(histogram):
    bins = histogram.counts.astype(float)
    last = int(np.flatnonzero(bins)[-1]) + 1
    found = {}
    for i in range(128, min(last + 1, 2048)):
        p = bins[:i].copy()
        p[i - 1] += bins[i:].sum()
        found[i] = divergence(p, quantized(bins[:i]))
    m = min(found, key=found.get)
    return min((m + 0.5) * histogram.bin_width, histogram.magnitude)


DRAWN = {
    "normal": lambda random: random.standard_normal(COUNT),
    "relu of normal": lambda random: np.maximum(random.standard_normal(COUNT), 0),
    "laplace": lambda random: random.laplace(size=COUNT),
    "uniform": lambda random: random.random(COUNT),
}


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN)
def test_the_threshold_is_that_of_the_slides(draw):
    histogram = histogram_of(draw(np.random.default_rng(1)))
    assert solve_with_all_bins(histogram).dynamic_range.threshold == pytest.approx(
        threshold_by_the_slides(histogram), rel=1e-12
    )


def test_the_zeros_of_a_relu_count_which_cuts_its_range():
    histogram = histogram_of(np.maximum(np.random.default_rng(1).standard_normal(1 << 20), 0))
    literal, without_bin_0 = solve_with_all_bins(histogram), calibrator("entropy2").solution(histogram)
    assert 1.8 < literal.dynamic_range.threshold < 2.1
    assert without_bin_0.dynamic_range.threshold > 4.0


def test_2048_bins_are_never_all_kept():
    histogram = histogram_of(np.linspace(0.0, 1.0, 1 << 14))
    assert solve_with_all_bins(histogram).details["kept_bins"] < 2048


def test_the_example_of_the_slides():
    p = np.array([1, 0, 2, 3, 5, 3, 1, 7.0])
    assert quantized(p, levels=2).tolist() == [2, 0, 2, 2, 4, 4, 4, 4]


def test_it_is_found_by_name():
    assert calibrator("entropy-all-bins") == ENTROPY_ALL_BINS
    assert ENTROPY_ALL_BINS.before_fusion
