"""Entropy2 with TensorRT's histograms, for comparison: they grow, lie on a lattice, and depend on the batch order.

The first batch that has values other than zero sets the width of the bins, a 2048th of its largest magnitude. When a
later one exceeds the table, the number of bins doubles until it fits. So the range depends on which batch comes first;
dryfit's own histogram, which does not, is always the better choice.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from dryfit.errors import CalibrationError
from dryfit.network.tensor import Array
from dryfit.quantization.calibrator import Calibrator, Solution
from dryfit.quantization.collector import Collector
from dryfit.quantization.histogram import Counts
from dryfit_plugins.calibrators.entropy2 import candidates_of, least_entropy

FIRST_BINS = 2048
MOST_BINS = 1 << 22
"""A tensor that would need more is refused: its first batch says nothing of the others. Our choice."""


class FirstBatchHistogram(Collector):
    """Counts of magnitudes in bins whose width the first batch sets.

    Attributes:
        largest: the magnitude that the first 2048 bins cover; 0.0 as long as all values are zero.
        counts: int64[bins].
        zeros: values that came before there was a width.
    """

    state_name = "first-batch histogram"
    is_mergeable = False
    is_per_sample = True

    def __init__(self, tensor: str = "", *, skips_nonfinite: bool = False) -> None:
        super().__init__(tensor, skips_nonfinite=skips_nonfinite)
        self.largest = 0.0
        self.counts: Counts = np.zeros(FIRST_BINS, np.int64)
        self.zeros = 0

    @property
    def bin_width(self) -> float:
        """The width of a bin."""
        return self.largest / FIRST_BINS

    def add(self, values: Array, sample: str) -> None:
        """Count the values of one batch.

        Raises:
            CalibrationError: a later batch is so much larger than the first that the bins would be too many.
        """
        magnitudes = np.abs(values.reshape(-1).astype(np.float64))
        if not self.largest:
            self.largest = float(magnitudes.max())
            if not self.bin_width:
                self.largest = 0.0
                self.zeros += magnitudes.size
                return
        bins = self.counts.size
        while magnitudes.max() > bins * self.bin_width:
            bins *= 2
            if bins > MOST_BINS:
                raise CalibrationError(
                    "A batch has values too large for the bin width that the first batch set",
                    where=f"tensor {self.tensor!r}, sample {sample!r}",
                    found=f"{magnitudes.max()} after {self.largest}",
                    allowed=f"at most {MOST_BINS * self.bin_width}",
                    remedy="Calibrate with another first batch, or use a calibrator whose bins do not depend on it",
                )
        self.counts = np.concatenate([self.counts, np.zeros(bins - self.counts.size, np.int64)])
        # The largest magnitude that the table covers lies in its last bin.
        places = np.minimum((magnitudes / self.bin_width).astype(np.int64), bins - 1)
        self.counts += np.bincount(places, minlength=bins)

    def payload(self) -> bytes:
        """A line of JSON, and the counts."""
        head = {"largest": self.largest.hex(), "zeros": self.zeros}
        return json.dumps(head, sort_keys=True).encode() + b"\n" + self.counts.astype("<i8").tobytes()

    def restore(self, payload: bytes) -> None:
        """Restore a state from the result of `payload`.

        Raises:
            CalibrationError: the bytes are not a valid state.
        """
        line, _, counts = payload.partition(b"\n")
        try:
            head = json.loads(line)
            self.largest, self.zeros = float.fromhex(head["largest"]), int(head["zeros"])
            self.counts = np.frombuffer(counts, "<i8").astype(np.int64)
        except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise self._damaged(str(error)) from error
        is_whole = self.counts.size >= FIRST_BINS and self.counts.size & (self.counts.size - 1) == 0
        if not is_whole or self.counts.min() < 0 or not 0.0 <= self.largest < np.inf:
            raise self._damaged(f"{self.counts.size} bins for {self.largest}")

    def _damaged(self, found: str) -> CalibrationError:
        return CalibrationError(
            "The state is not a first-batch histogram",
            where=f"state of tensor {self.tensor!r}",
            found=found,
            remedy="Collect the calibration state again",
        )


def solve(histogram: FirstBatchHistogram) -> Solution:
    """The range with the smallest relative entropy: `(m + 1/2) * M / 2048`, which may exceed the largest value."""
    counts = histogram.counts.copy()
    counts[0] = 0
    candidates = candidates_of(counts)
    if not candidates.size:
        used: Any = histogram.counts.nonzero()[0]
        return Solution.of_threshold((float(used[-1]) + 0.5) * histogram.bin_width if used.size else 0.0)
    kept, _ = least_entropy(counts, candidates)
    return Solution.of_threshold((kept + 0.5) * histogram.bin_width, kept_bins=kept, bins=counts.size)


CALIBRATOR = Calibrator(
    name="entropy2-tensorrt",
    title="entropy2, dependent on the first batch as in TensorRT",
    solve=solve,
    collector=FirstBatchHistogram,
    source="NVIDIA's MLPerf inference 0.5 calibration note; the lattice of published caches",
)
