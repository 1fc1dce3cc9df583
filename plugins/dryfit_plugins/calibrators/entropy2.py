"""The calibrator that loses the least information, like TensorRT's IInt8EntropyCalibrator2.

For each number of bins that could be kept, it compares two distributions: P, the kept bins with everything beyond
them added to the last one, and Q, the kept bins after being quantized evenly to INT8's 128 magnitudes. The
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

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.quantization.calibrator import Calibrator, Solution
from dryfit.quantization.histogram import BINS, Counts, Histogram

_TERMS = 11
"""The next term is below 2^-60 of the sum."""

_LOG_2 = math.log(2.0)


def natural_logarithm(values: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The natural logarithm of positive numbers, within 2e-16 of the larger of 1 and the result's magnitude.

    It has the same bits on every machine: numpy and the C library choose among several implementations by what the
    processor has, and their last bits differ. A calibrator that looks for the smallest of many nearly equal numbers
    would give other ranges on another machine. This one uses only operations whose result IEEE 754 prescribes.

    Zeros and NaN give what has no meaning, without an error. The series is 2 atanh((m - 1) / (m + 1)) for m from 0.7 to
    1.42, and the exponent's share is added.
    """
    fraction, exponent = np.frexp(np.asarray(values, np.float64))
    low = fraction < math.sqrt(0.5)
    fraction = np.where(low, 2.0 * fraction, fraction)
    ratio = (fraction - 1.0) / (fraction + 1.0)
    square = ratio * ratio
    total = np.full_like(square, 1.0 / (2 * _TERMS + 1))
    for term in range(_TERMS - 1, -1, -1):
        total *= square
        total += 1.0 / (2 * term + 1)
    return np.asarray(2.0 * ratio * total + (exponent - low) * _LOG_2)


LEVELS = 128
"""Magnitudes of INT8, and the least number of bins that is kept."""

_CANDIDATES_AT_ONCE = 256
"""Fewer cost more calls of numpy, more leave the caches."""

_ESTIMATE_ERROR = 1e-9
"""Far more than an estimate is off: below 1e-13, since numpy's logarithms are within a few units in the last place."""

Floats = np.ndarray[Any, np.dtype[np.float64]]


def solve(histogram: Histogram) -> Solution:
    """The range with the smallest relative entropy; ties go to the smallest range.

    The threshold is the middle of the bin after the last kept one, and the largest magnitude at most. Values so small
    that they fill fewer than 128 bins (below 2^-119) keep their largest magnitude.
    """
    counts = histogram.counts.copy()
    counts[0] = 0
    return least_divergent(histogram, counts)


def least_divergent(histogram: Histogram, counts: Counts, most_kept: int = BINS) -> Solution:
    """The range with the smallest relative entropy for these counts of a histogram's bins, of which some are kept."""
    candidates = candidates_of(counts)
    candidates = candidates[candidates <= most_kept]
    if not candidates.size:
        return Solution.of_threshold(histogram.magnitude)
    keeps_half = 2 * _running_sum(counts)[candidates] >= counts.sum()
    kept, divergence = least_entropy(counts, candidates[keeps_half])
    threshold = min((kept + 0.5) * histogram.bin_width, histogram.magnitude)
    return Solution.of_threshold(
        threshold,
        kept_bins=kept,
        divergence=divergence,
        saturated=int(counts[kept:].sum()),
    )


def candidates_of(counts: Counts, levels: int = LEVELS) -> Counts:
    """The numbers of bins that may be kept: from `levels` to the last bin that is not empty and it included."""
    used = counts.nonzero()[0]
    return np.arange(levels, int(used[-1]) + 2 if used.size else 0)


def least_entropy(counts: Counts, candidates: Counts) -> tuple[int, float]:
    """The candidate with the smallest relative entropy, the first of several, and its entropy in nats.

    `LEVELS` and infinity where no candidate has a finite entropy.
    """
    sums = _Sums.of(counts)
    candidates = _finite(candidates, counts)
    if not candidates.size:
        return LEVELS, math.inf
    # Nearly all candidates are far from the smallest entropy, which estimates are enough to see.
    estimates = sums.estimates(candidates)
    candidates = candidates[estimates <= estimates.min() + _ESTIMATE_ERROR]
    entropies = sums.entropies(candidates, LEVELS)
    best = int(entropies.argmin())
    return int(candidates[best]), float(entropies[best])


def relative_entropies(counts: Counts, levels: int = LEVELS) -> tuple[Counts, Floats]:
    """The numbers of bins that may be kept, and the relative entropy in nats for each.

    Args:
        counts: int64[bins]; bins that are to be left out are 0.
        levels: how many magnitudes share the kept bins.

    Returns:
        int64[candidates], as `candidates_of` gives them, and float64[candidates].
    """
    candidates = candidates_of(counts, levels)
    finite = _finite(candidates, counts)
    divergences = np.full(candidates.size, np.inf)
    divergences[finite - levels] = _Sums.of(counts).entropies(finite, levels)
    return candidates, divergences


def _finite(candidates: Counts, counts: Counts) -> Counts:
    """Candidates whose last bin is not empty.

    Of the others P has there what lies beyond and Q nothing: in an image's histogram that is most of them.
    """
    return candidates[counts[candidates - 1] > 0]


@frozen
class _Sums:
    """What lies before each bin, and before the end: values, bins that are not empty, `n log n` of the counts.

    Inside a level Q is constant, so that with these sums a candidate costs as many steps as there are levels, not as
    there are bins.
    """

    counts: Counts
    values: Counts
    used: Counts
    own: Floats

    @classmethod
    def of(cls, counts: Counts) -> _Sums:
        own = _times_own_logarithm(counts)
        return cls(counts, _running_sum(counts), _running_sum(counts > 0), _running_sum(own))

    def entropies(self, candidates: Counts, levels: int) -> Floats:
        """The relative entropy of candidates whose last bin is not empty."""
        # numpy adds a single column in pairs, and several row after row: the bits shall not depend on the neighbors.
        some = np.append(candidates, candidates[-1:])
        return _in_parts(lambda part: self._entropies(part, levels), some)[: candidates.size]

    def _entropies(self, candidates: Counts, levels: int) -> Floats:
        # Level g has the bins from ceil(g * kept / levels) to the one before the next level's first.
        edges = -(np.arange(levels + 1)[:, None] * -candidates // levels)
        inside = np.diff(self.values[edges], axis=0)
        reference = inside.copy()
        beyond = self.values[-1] - self.values[candidates]
        reference[-1] += beyond
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = natural_logarithm(inside / np.diff(self.used[edges], axis=0))
        # A sum along the first axis adds row after row, in this order on every machine.
        cross = np.where(inside > 0, reference * mean, 0.0).sum(axis=0)
        final = self.counts[candidates - 1]
        entropy = self.own[candidates - 1] + _times_own_logarithm(final + beyond)
        found: Floats = (entropy - cross) / self.values[-1] + natural_logarithm(
            self.values[candidates] / self.values[-1]
        )
        return found

    def estimates(self, candidates: Counts) -> Floats:
        """The same for `LEVELS` within `_ESTIMATE_ERROR` in a fifth of the time: numpy's logarithm, few passes."""
        values, used = self.values.astype(np.float64), self.used.astype(np.float64)
        return _in_parts(lambda part: self._estimates(part, values, used), candidates)

    def _estimates(self, candidates: Counts, values: Floats, used: Floats) -> Floats:
        # INT32 holds this for fewer than 2**24 bins; there are at most 2**22, in `entropy2_tensorrt`.
        edges = np.arange(LEVELS + 1, dtype=np.int32)[:, None] * candidates.astype(np.int32)
        edges += LEVELS - 1
        edges //= LEVELS
        inside, mean = (table[1:] - table[:-1] for table in (sums.take(edges) for sums in (values, used)))
        # An empty level has the mean 1 here, whose logarithm is 0.
        np.divide(np.maximum(inside, 1.0), np.maximum(mean, 1.0, out=mean), out=mean)
        np.log(mean, out=mean)
        beyond = values[-1] - values[candidates]
        last = beyond * mean[-1]
        mean *= inside
        final = self.counts[candidates - 1] + beyond
        entropy = self.own[candidates - 1] + final * np.log(final)
        found: Floats = (entropy - mean.sum(axis=0) - last) / values[-1] + np.log(values[candidates] / values[-1])
        return found


def _in_parts(compute: Callable[[Counts], Floats], candidates: Counts) -> Floats:
    """What a function gives for candidates, in parts of at least `_CANDIDATES_AT_ONCE` if there are so many."""
    number = max(1, candidates.size // _CANDIDATES_AT_ONCE)
    return np.concatenate([compute(part) for part in np.array_split(candidates, number)])


def _running_sum(values: Any) -> Any:
    """The sum of all values before each place, and of all at the end."""
    return np.concatenate([[0], np.cumsum(values)])


def _times_own_logarithm(counts: Counts) -> Floats:
    """`n log n`; 0 for 0."""
    return counts * natural_logarithm(np.maximum(counts, 1))


CALIBRATOR = Calibrator(
    name="entropy2",
    title="minimum relative entropy",
    solve=solve,
    before_fusion=True,
    version="2",
    source="S. Migacz, 8-bit inference with TensorRT, GTC 2017; NVIDIA's MLPerf inference 0.5 calibration note",
)


# Chosen by the outputs of the network, see `dryfit.calibration.output_mix`; the search begins with these ranges.
AUTO = Calibrator(
    name="auto",
    title="per tensor the calibrator that harms the outputs least",
    solve=solve,
    before_fusion=True,
    judges_outputs=True,
    source="our choice: the error at the outputs on held-back samples is what a user sees",
)


# No public source shows another criterion. What differs is which tensors are asked for, and that none share a range.
ENTROPY = Calibrator(
    name="entropy",
    title="minimum relative entropy, after fusion",
    solve=solve,
    before_fusion=False,
    version="2",
    source="TensorRT 8 developer guide, IInt8EntropyCalibrator",
)


def solve_with_all_bins(histogram: Histogram) -> Solution:
    """The range with the smallest relative entropy where bin 0 counts like any other, as the GTC 2017 slides have it.

    It is here to reproduce what was published with it. A ReLU makes half of the values zero, and all of them fall into
    bin 0, so that the search cuts off most of the range (20 dB lost on the ReLU of a normal distribution).

    From 128 to 2047 bins are kept. The threshold is the middle of the bin after the last kept one, and the largest
    magnitude at most. The bins are those of the histogram, whose width is a power of two, where the slides divide the
    largest magnitude by 2048.
    """
    return least_divergent(histogram, histogram.counts, most_kept=BINS - 1)


ENTROPY_ALL_BINS = Calibrator(
    name="entropy-all-bins",
    title="minimum relative entropy, including bin 0",
    solve=solve_with_all_bins,
    source="S. Migacz, 8-bit inference with TensorRT, GTC 2017: the pseudocode of the calibration",
)
