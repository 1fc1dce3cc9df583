"""The calibrator that loses the least information, as TensorRT's IInt8EntropyCalibrator2.

For each number of bins that could be kept it compares two distributions: P, the kept bins with all that lies beyond
added to the last of them, and Q, what is left of the kept bins when INT8's 128 magnitudes share them out evenly. The
threshold is where the relative entropy of P to Q, sum P log (P / Q), is smallest.

Bin 0 is left out of both. It holds the zeros that ReLU makes, which INT8 represents exactly; counted as a level like
the others they cost 20 dB. Q does not have what lies beyond, and where P has something and Q nothing, the entropy is
infinite: only so do images, whose histograms are mostly empty, get the range that published caches show.

A range that keeps a single bin loses nothing by this measure, for then P and Q are the same, although all other values
saturate. So a range has to keep at least half of the values that are compared. Where a tensor has no small values, as
the scores of a detector do, that is what keeps its range from ending at its smallest value. Our choice; how TensorRT
treats such histograms is not published.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dryfit.quantization.calibrator import Calibrator, Solution
from dryfit.quantization.histogram import BINS, Counts, Histogram
from dryfit_plugins.calibrators.logarithm import natural_logarithm

LEVELS = 128
"""Magnitudes of INT8, and the least number of bins that is kept."""

_CANDIDATES_AT_ONCE = 128
"""Their tables fit into a core's own cache."""

Floats = np.ndarray[Any, np.dtype[np.float64]]


def solve(histogram: Histogram) -> Solution:
    """The range with the smallest relative entropy; among equal ones the smallest range.

    The threshold is the middle of the bin after the last kept one, and the largest magnitude at most. Values so small
    that they fill fewer than 128 bins (below 2^-119) keep their largest magnitude.
    """
    counts = histogram.counts.copy()
    counts[0] = 0
    return least_divergent(histogram, counts)


def least_divergent(histogram: Histogram, counts: Counts, most_kept: int = BINS) -> Solution:
    """The range with the smallest relative entropy for these counts of a histogram's bins, of which some are kept."""
    candidates, divergences = relative_entropies(counts)
    candidates, divergences = candidates[candidates <= most_kept], divergences[candidates <= most_kept]
    if not candidates.size:
        return Solution.of_threshold(histogram.magnitude)
    kept_counts = _running_sum(counts)[candidates]
    divergences[2 * kept_counts < counts.sum()] = np.inf
    best = int(divergences.argmin())
    kept = int(candidates[best])
    threshold = min((kept + 0.5) * histogram.bin_width, histogram.magnitude)
    return Solution.of_threshold(
        threshold,
        kept_bins=kept,
        divergence=float(divergences[best]),
        saturated=int(counts[kept:].sum()),
    )


def relative_entropies(counts: Counts, levels: int = LEVELS) -> tuple[Counts, Floats]:
    """The numbers of bins that may be kept, and the relative entropy in nats for each.

    Inside a level Q is constant, so that with sums over all bins before each one a candidate costs as many steps as
    there are levels, not as there are bins.

    Args:
        counts: int64[bins]; bins that are to be left out are 0.
        levels: how many magnitudes share the kept bins.

    Returns:
        int64[candidates], from `levels` to the last bin that is not empty and it included, and float64[candidates].
    """
    used = counts.nonzero()[0]
    last = int(used[-1]) + 1 if used.size else 0
    candidates = np.arange(levels, last + 1)
    if not candidates.size:
        return candidates, np.empty(0)
    parts = np.split(candidates, range(_CANDIDATES_AT_ONCE, candidates.size, _CANDIDATES_AT_ONCE))
    sums = _running_sum(counts), _running_sum(counts > 0), _running_sum(_times_own_logarithm(counts))
    return candidates, np.concatenate([_divergences(part, counts, levels, *sums) for part in parts])


def _divergences(candidates: Counts, counts: Counts, levels: int, sums: Counts, used: Counts, own: Floats) -> Floats:
    """The relative entropy of some candidates; `sums`, `used` and `own` are running sums, one longer than `counts`."""
    # Level g has the bins from ceil(g * kept / levels) to the one before the next level's first.
    edges = -(np.arange(levels + 1)[:, None] * -candidates // levels)
    inside = np.diff(sums[edges], axis=0)
    reference = inside.copy()
    beyond = sums[-1] - sums[candidates]
    reference[-1] += beyond
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = natural_logarithm(inside / np.diff(used[edges], axis=0))
    # A sum along the first axis adds row after row, in this order on every machine.
    cross = np.where(inside > 0, reference * mean, 0.0).sum(axis=0)
    final = counts[candidates - 1]
    entropy = own[candidates - 1] + _times_own_logarithm(final + beyond)
    found = (entropy - cross) / sums[-1] + natural_logarithm(sums[candidates] / sums[-1])
    return np.where((beyond > 0) & (final == 0), np.inf, found)


def _running_sum(values: Any) -> Any:
    """The sum of all values before each place, and of all at the end."""
    return np.concatenate([[0], np.cumsum(values)])


def _times_own_logarithm(counts: Counts) -> Floats:
    """`n log n`; 0 for 0."""
    return counts * natural_logarithm(np.maximum(counts, 1))


CALIBRATOR = Calibrator(
    name="entropy2",
    title="the smallest relative entropy",
    solve=solve,
    before_fusion=True,
    version="2",
    source="S. Migacz, 8-bit inference with TensorRT, GTC 2017; NVIDIA's MLPerf inference 0.5 calibration note",
)
