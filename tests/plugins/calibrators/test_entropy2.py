"""The entropy search against its definition, published thresholds, and the ranges of images in published caches."""

import math

import numpy as np
import pytest

from dryfit.quantization.histogram import BINS, Histogram
from dryfit.testing.solver_checks import DISTRIBUTIONS
from dryfit_plugins.calibrators.entropy2 import CALIBRATOR, candidates_of, least_entropy, relative_entropies


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


@pytest.mark.parametrize("seed", [5, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (6, 7))])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_each_entropy_is_that_of_the_definition_and_the_same_candidate_wins(name, seed):
    counts = counts_of(DISTRIBUTIONS[name](np.random.default_rng(seed), 2_000 * seed), bins=200 + 4 * seed)
    candidates, found = relative_entropies(counts)
    expected = entropies_by_definition(counts)
    assert candidates.tolist() == list(range(128, 128 + len(expected)))
    assert np.isinf(found).tolist() == np.isinf(expected).tolist()
    finite = np.isfinite(expected)
    np.testing.assert_allclose(found[finite], expected[finite], rtol=0, atol=1e-12)
    assert found.argmin() == expected.argmin()


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_least_entropy_has_the_bits_that_all_entropies_have(name):
    counts = counts_of(DISTRIBUTIONS[name](np.random.default_rng(8), 20_000))
    candidates, entropies = relative_entropies(counts)
    best = entropies.argmin()
    assert least_entropy(counts, candidates_of(counts)) == (candidates[best], entropies[best])


def test_candidates_that_end_in_an_empty_bin_have_no_entropy():
    counts = np.zeros(BINS, np.int64)
    counts[[5, 2000]] = 1
    assert least_entropy(counts, np.arange(128, 1900)) == (128, math.inf)


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


def test_the_worked_example_of_the_article_has_its_divergence():
    """P = [1, 0, 2, 3, 5, 3, 1, 7] in two levels becomes Q = [2, 0, 2, 2, 4, 4, 4, 4].

    Source: the article "TensorRT(5)-INT8" (2018), on the pseudo-code of GTC 2017.
    """
    p, q = np.array([1, 0, 2, 3, 5, 3, 1, 7]), np.array([2, 0, 2, 2, 4, 4, 4, 4])
    expected = math.fsum(a / 22 * math.log(a / b) for a, b in zip(p, q, strict=True) if a)
    candidates, found = relative_entropies(p, levels=2)
    assert candidates.tolist() == list(range(2, 9))
    assert found[-1] == pytest.approx(expected, abs=1e-15)


def signal_to_noise(values, threshold):
    """Decibels of the values over what INT8 with this threshold makes of them."""
    scale = threshold / 127
    noise = np.clip(np.round(values / scale), -128, 127) * scale - values
    return 10 * math.log10((values**2).sum() / (noise**2).sum())


def test_the_pseudo_code_taken_literally_costs_twenty_decibels_on_a_relu_output():
    """It keeps bin 0, where all zeros are. Source of the threshold and the decibels: measured, 1.886 and 17.9."""
    (values,) = [values for name, values in drawn_values() if name == "relu of gaussian"]
    width = values.max() / BINS
    literal = np.bincount(np.minimum((values / width).astype(int), BINS - 1), minlength=BINS)
    candidates, entropies = relative_entropies(literal)
    threshold = (candidates[entropies.argmin()] + 0.5) * width
    assert threshold == pytest.approx(1.886, abs=2e-3)
    ours = CALIBRATOR.solution(histogram_of(values)).dynamic_range.threshold
    assert signal_to_noise(values, threshold) == pytest.approx(17.9, abs=0.1)
    assert signal_to_noise(values, ours) > 17.9 + 20


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


def test_a_tensor_without_small_values_keeps_more_than_its_smallest_value():
    scores = -np.random.default_rng(5).normal(11.0, 2.0, 800).clip(3.0, 17.0).astype(np.float32)
    found = CALIBRATOR.solution(histogram_of(scores)).dynamic_range.threshold
    assert (np.abs(scores) <= found).mean() > 0.9
    assert signal_to_noise(scores, found) > 30


@pytest.mark.parametrize("seed", range(20))
def test_a_range_keeps_half_of_the_values_that_are_compared(seed):
    random = np.random.default_rng(seed)
    values = random.normal(random.uniform(1, 20), 0.5, 500) if seed % 2 else random.exponential(1, 500)
    values = np.append(values, random.uniform(0, 30, random.integers(1, 4))).astype(np.float32)
    seen = histogram_of(values)
    kept = np.abs(values) <= CALIBRATOR.solution(seen).dynamic_range.threshold + seen.bin_width
    compared = np.abs(values) >= seen.bin_width
    assert 2 * (kept & compared).sum() >= compared.sum()
