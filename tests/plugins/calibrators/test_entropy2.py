"""The entropy search against its definition, published thresholds, and the ranges of images in published caches."""

import math

import numpy as np
import pytest

from dryfit.quantization.histogram import BINS, Histogram
from dryfit.testing.distributions import DISTRIBUTIONS
from dryfit_plugins.calibrators.entropy2 import CALIBRATOR, relative_entropies


def entropies_by_definition(counts, first=128):
    """P and Q of each candidate as written down, compared term by term, with the C library's logarithm."""
    last = int(counts.nonzero()[0][-1]) + 1
    found = []
    for kept in range(first, last + 1):
        p = counts[:kept].astype(float)
        p[-1] += counts[kept:].sum()
        q = np.zeros(kept)
        levels = np.arange(kept) * 128 // kept
        for level in range(128):
            bins = [place for place in np.flatnonzero(levels == level) if counts[place]]
            q[bins] = counts[bins].sum() / max(len(bins), 1)
        terms = [
            math.inf if b == 0 else a / p.sum() * math.log(a / p.sum() / (b / q.sum()))
            for a, b in zip(p, q, strict=True)
            if a
        ]
        found.append(math.fsum(terms) if math.inf not in terms else math.inf)
    return np.array(found)


def counts_of(values, bins=BINS):
    """Counts over the bins from 0 to the largest magnitude, as the published figures have them."""
    magnitudes = np.abs(values)
    counts = np.bincount(np.minimum((magnitudes * (bins / magnitudes.max())).astype(int), bins - 1), minlength=bins)
    counts[0] = 0
    return counts


def histogram_of(values):
    histogram = Histogram("x")
    histogram.update(values.astype(np.float32), "s")
    return histogram


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_each_entropy_is_that_of_the_definition_and_the_same_candidate_wins(name):
    counts = counts_of(DISTRIBUTIONS[name](np.random.default_rng(5), 6_000), bins=220)
    candidates, found = relative_entropies(counts)
    expected = entropies_by_definition(counts)
    assert candidates.tolist() == list(range(128, 128 + len(expected)))
    assert np.isinf(found).tolist() == np.isinf(expected).tolist()
    finite = np.isfinite(expected)
    np.testing.assert_allclose(found[finite], expected[finite], rtol=0, atol=1e-12)
    assert found.argmin() == expected.argmin()


def drawn_values():
    """The values behind the published figures: 2^20 of each kind, drawn one kind after the other."""
    random = np.random.default_rng(1)
    count = 1 << 20
    yield "gaussian", random.standard_normal(count)
    yield "laplace", random.laplace(size=count)
    yield "relu of gaussian", np.maximum(random.standard_normal(count), 0)
    yield "relu of laplace", np.maximum(random.laplace(size=count), 0)
    yield "student t", random.standard_t(3, count)
    yield "uniform", random.random(count)


PUBLISHED = {
    "gaussian": (5.040, 4.728),
    "laplace": (12.889, 11.045),
    "relu of gaussian": (5.033, 4.485),
    "relu of laplace": (13.754, 10.584),
    "student t": (304.9, 20.40),
    "uniform": (1.0, 1.0),
}
"""Largest value and threshold that pytorch-quantization's entropy calibrator gives, measured.

It takes bin edges as thresholds, where the middle of the next bin is taken here: half a bin less.
"""


def test_thresholds_are_those_of_an_implementation_in_use():
    for name, values in drawn_values():
        largest, threshold = PUBLISHED[name]
        candidates, entropies = relative_entropies(counts_of(values))
        width = np.abs(values).max() / BINS
        assert np.abs(values).max() == pytest.approx(largest, rel=2e-4), name
        assert candidates[entropies.argmin()] * width == pytest.approx(threshold, rel=2e-4), name


def test_a_relu_output_keeps_its_range():
    """Were the zeros counted as a level, 1.89 of 5.03 would be left."""
    (values,) = [values for name, values in drawn_values() if name == "relu of gaussian"]
    assert 4.1 < CALIBRATOR.solution(histogram_of(values)).dynamic_range.threshold <= values.max()


@pytest.mark.parametrize("mean", [0.406, 0.485, 0.0])
def test_an_image_of_256_values_keeps_nearly_its_whole_range(mean):
    """Source: published caches, where T x 2048 / M of image inputs is 2008.5 to 2048.5."""
    values = (np.random.default_rng(2).integers(0, 256, 100_000) / 255 - mean) / 0.225
    solution = CALIBRATOR.solution(histogram_of(values))
    assert solution.dynamic_range.threshold / np.abs(values).max() >= 2008.5 / 2048


def test_what_lies_beyond_is_told():
    values = np.concatenate([np.random.default_rng(0).standard_normal(100_000), [60.0, -55.0, 58.0]])
    details = CALIBRATOR.solution(histogram_of(values)).details
    assert details["saturated"] >= 3
    assert details["kept_bins"] < BINS / 4
    assert details["divergence"] > 0


def test_the_threshold_is_the_middle_of_the_first_bin_that_is_left_out():
    values = np.concatenate([np.random.default_rng(0).standard_normal(100_000), [60.0]])
    histogram = histogram_of(values)
    solution = CALIBRATOR.solution(histogram)
    assert solution.dynamic_range.threshold == (solution.details["kept_bins"] + 0.5) * histogram.bin_width


def test_the_threshold_is_the_largest_value_at_most():
    values = np.random.default_rng(0).random(100_000) + 0.0
    assert CALIBRATOR.solution(histogram_of(values)).dynamic_range.threshold == np.float32(values.max())


def test_equal_counts_lose_nothing_when_all_are_kept():
    counts = np.zeros(BINS, np.int64)
    counts[1:129] = 1
    candidates, entropies = relative_entropies(counts)
    assert candidates.tolist() == [128, 129]
    assert abs(entropies[1]) < 1e-15 < entropies[0]


def test_values_in_fewer_than_128_bins_keep_their_largest():
    histogram = histogram_of(np.array([2.0**-125, 2.0**-126]))
    assert CALIBRATOR.solution(histogram).dynamic_range.threshold == 2.0**-125
