"""TensorRT's way of gathering: growth from the first batch, the lattice of its thresholds, dependence on the order."""

import numpy as np
import pytest

from dryfit.errors import CalibrationError
from dryfit_plugins.calibrators.entropy2_tensorrt import CALIBRATOR, FirstBatchHistogram


def gathered(*batches):
    histogram = FirstBatchHistogram("x")
    for index, batch in enumerate(batches):
        histogram.update(np.asarray(batch, np.float32), f"batch {index}")
    return histogram


def lattice_place(solution, first):
    """What the threshold is in 2048th parts of the first batch's largest magnitude."""
    return solution.dynamic_range.threshold * 2048 / first


def normal(seed, count=20_000, scale=1.0):
    return np.random.default_rng(seed).standard_normal(count).astype(np.float32) * np.float32(scale)


def test_thresholds_are_middles_of_bins_of_the_first_batch():
    first = normal(0)
    for later in ([], [normal(1, scale=3.0)], [normal(2, scale=0.2)]):
        place = lattice_place(CALIBRATOR.solution(gathered(first, *later)), float(np.abs(first).max()))
        assert place - 0.5 == pytest.approx(round(place - 0.5), abs=1e-6)


def test_a_picture_keeps_everything_and_half_a_bin_more():
    """Source: published caches of TensorRT 4 to 10.3, where T x 2048 / M of inputs is 2008.5 to 2048.5."""
    pixels = (np.random.default_rng(3).integers(0, 256, 200_000) / 255).astype(np.float32)
    solution = CALIBRATOR.solution(gathered(pixels))
    assert 2008.5 <= lattice_place(solution, 1.0) <= 2048.5
    uniform = CALIBRATOR.solution(gathered(np.linspace(0, 1, 1 << 20, dtype=np.float32)))
    assert lattice_place(uniform, 1.0) == pytest.approx(2048.5)


def test_bins_double_until_a_larger_batch_fits_and_keep_their_width():
    histogram = gathered([1.0, 0.5], [-1.0, 3.5], [0.25])
    assert (histogram.counts.size, histogram.bin_width) == (4 * 2048, 1 / 2048)
    assert {int(place): int(histogram.counts[place]) for place in histogram.counts.nonzero()[0]} == {
        512: 1,
        1024: 1,
        2047: 1,
        2048: 1,
        7168: 1,
    }


def test_the_order_of_batches_changes_the_range():
    small, large = normal(4, scale=0.3), normal(5)
    ranges = {CALIBRATOR.solution(gathered(*order)).dynamic_range for order in ((small, large), (large, small))}
    assert len(ranges) == 2


def test_a_first_batch_of_zeros_sets_no_width():
    histogram = gathered(np.zeros(8), [2.0])
    assert (histogram.largest, histogram.zeros, int(histogram.counts.sum())) == (2.0, 8, 1)


def test_a_batch_beyond_all_bins_is_refused():
    with pytest.raises(CalibrationError, match=r"tensor 'x', sample 'batch 1'.*another first batch"):
        gathered([1e-6], [1.0])
