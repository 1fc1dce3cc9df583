"""The histogram of magnitudes that is the same for every order, batch and split of the samples.

The width of a bin is always a power of two, set by the largest magnitude seen so far. When that grows, whole groups of
neighbouring bins become one. Division by a power of two is exact, and so is halving a bin number, so the state depends
on the values alone: it is what one histogram of all values at once would be.
"""

from __future__ import annotations

import math
import struct
from typing import Any, Self

import numpy as np

from dryfit.errors import CalibrationError
from dryfit.quantization.collector import Array, Collector

BIN_BITS = 11
BINS = 1 << BIN_BITS

LEAST_EXPONENT = -115
"""Bins are at least 2^-126 wide, so that the inverse of the width is a binary32 number and denormals lie in bin 0."""

_CHUNK = 1 << 15
"""Values that are binned at once: their temporaries fit into a core's own cache."""

_HEAD = struct.Struct("<hqdd")
_NO_EXPONENT = -(1 << 15)

Counts = np.ndarray[Any, np.dtype[np.int64]]


class Histogram(Collector):
    """Counts of magnitudes in 2048 equal bins, with the exact least and largest value.

    A value x lies in bin `floor(|x| / bin_width)`, where `bin_width = 2^(exponent - 11)` and `2^exponent` is the least
    power of two above the largest magnitude. Of the 2048 bins 1025 to 2048 are in use. 16 KiB, whatever is counted.

    Attributes:
        counts: int64[2048].
        exponent: None as long as nothing but zeros was seen.
        minimum, maximum: of all values, with their signs; infinity and minus infinity as long as there is none.
        zeros: how many values are zero; they are counted in bin 0 as well.

    Source: our choice, because doubling from the first batch's maximum, TensorRT's way, makes scales depend on the
        order of the samples by up to 50 %.

    Example:
        >>> histogram = Histogram("conv1")
        >>> histogram.update([0.0, -3.0, 1.5], "first")
        >>> histogram.exponent, histogram.count, histogram.zeros, histogram.counts.nonzero()[0].tolist()
        (2, 3, 1, [0, 768, 1536])
    """

    state_name = "histogram 2^11"

    def __init__(self, tensor: str = "", *, skips_nonfinite: bool = False) -> None:
        super().__init__(tensor, skips_nonfinite=skips_nonfinite)
        self.counts: Counts = np.zeros(BINS, np.int64)
        self.exponent: int | None = None
        self.minimum, self.maximum = math.inf, -math.inf
        self.zeros = 0

    @property
    def count(self) -> int:
        """How many values were seen."""
        return int(self.counts.sum())

    @property
    def magnitude(self) -> float:
        """The largest magnitude, exactly; 0.0 where there is none."""
        return max(-self.minimum, self.maximum, 0.0)

    @property
    def bin_width(self) -> float:
        """The width of a bin, a power of two; 0.0 as long as nothing but zeros was seen."""
        return 0.0 if self.exponent is None else math.ldexp(1.0, self.exponent - BIN_BITS)

    def add(self, values: Array, sample: str) -> None:  # noqa: ARG002  which sample it was does not matter
        """Count the values."""
        # A sum with zero turns -0.0 into 0.0: equal values have to give equal bytes.
        self.minimum = min(self.minimum, float(values.min()) + 0.0)
        self.maximum = max(self.maximum, float(values.max()) + 0.0)
        self.zeros += int(values.size - np.count_nonzero(values))
        self._widen_to(_exponent_of(self.magnitude))
        if self.exponent is None:
            self.counts[0] += values.size
        else:
            self.counts += _bin_counts(values, self.exponent)

    def absorb(self, other: Self) -> None:
        """Add the counts of another histogram, whose bins may be of another width."""
        self.minimum, self.maximum = min(self.minimum, other.minimum), max(self.maximum, other.maximum)
        self.zeros += other.zeros
        self._widen_to(other.exponent)
        self.counts += _folded(other.counts, other.exponent, self.exponent)

    def _widen_to(self, exponent: int | None) -> None:
        """Make the bins at least as wide as those of an exponent."""
        if exponent is not None and (self.exponent is None or exponent > self.exponent):
            self.counts = _folded(self.counts, self.exponent, exponent)
            self.exponent = exponent

    def payload(self) -> bytes:
        """Exponent, zeros, least and largest value, counts: little-endian, 16410 bytes."""
        exponent = _NO_EXPONENT if self.exponent is None else self.exponent
        return _HEAD.pack(exponent, self.zeros, self.minimum, self.maximum) + self.counts.astype("<i8").tobytes()

    def restore(self, payload: bytes) -> None:
        """Take over a state that `payload` gave.

        Raises:
            CalibrationError: these values cannot have been counted together.
        """
        if len(payload) != _HEAD.size + 8 * BINS:
            raise CalibrationError(
                "The histogram has the wrong size",
                where=f"state of tensor {self.tensor!r}",
                found=f"{len(payload)} bytes",
                allowed=f"{_HEAD.size + 8 * BINS}",
            )
        exponent, self.zeros, self.minimum, self.maximum = _HEAD.unpack_from(payload)
        self.exponent = None if exponent == _NO_EXPONENT else exponent
        self.counts = np.frombuffer(payload, "<i8", offset=_HEAD.size).astype(np.int64)
        problem = self._contradiction()
        if problem:
            raise CalibrationError(
                "The histogram contradicts itself", where=f"state of tensor {self.tensor!r}", found=problem
            )

    def _contradiction(self) -> str:
        """Why no values can have led to this state; "" where some can."""
        if self.counts.min() < 0:
            return f"a count of {self.counts.min()}"
        if self.counts.sum(dtype=np.float64) >= 2.0**63:
            return "more values than can be counted"
        if not self.count:
            fresh = (self.zeros, self.exponent, self.minimum, self.maximum) == (0, None, math.inf, -math.inf)
            return "" if fresh else "facts about values, and no value"
        if not (math.isfinite(self.minimum) and math.isfinite(self.maximum) and self.minimum <= self.maximum):
            return f"values from {self.minimum} to {self.maximum}"
        if self.exponent != _exponent_of(self.magnitude):
            return f"the exponent {self.exponent} for values up to {self.magnitude}"
        if not 0 <= self.zeros <= self.counts[0]:
            return f"{self.zeros} zeros among {self.counts[0]} values in bin 0"
        last = 0 if self.exponent is None else int(self.magnitude / self.bin_width)
        if int(self.counts.nonzero()[0][-1]) != last:
            return f"the largest magnitude {self.magnitude} elsewhere than in the last bin that has values"
        return ""


def _exponent_of(magnitude: float) -> int | None:
    """The exponent for a largest magnitude; None for zero."""
    return max(math.frexp(magnitude)[1], LEAST_EXPONENT) if magnitude else None


def _bin_counts(values: Array, exponent: int) -> Counts:
    """How many values lie in each bin; all magnitudes are below 2^exponent."""
    if exponent > 128:  # an earlier sample was float64 and larger than a float32 can be
        values = values.astype(np.float64)
    per_width = values.dtype.type(math.ldexp(1.0, BIN_BITS - exponent))
    flat = values.reshape(-1)
    counts = np.zeros(BINS, np.int64)
    for start in range(0, flat.size, _CHUNK):
        scaled = np.abs(flat[start : start + _CHUNK])
        scaled *= per_width
        counts += np.bincount(scaled.astype(np.intp), minlength=BINS)
    return counts


def _folded(counts: Counts, exponent: int | None, wider: int | None) -> Counts:
    """The counts for the bins of a larger exponent: groups of 2^(wider - exponent) neighbours become one."""
    if exponent is None or wider is None or wider == exponent:
        return counts  # without an exponent there are only zeros, which stay in bin 0
    group = 1 << min(wider - exponent, BIN_BITS)
    folded = np.zeros(BINS, np.int64)
    folded[: BINS // group] = counts.reshape(-1, group).sum(axis=1)
    return folded
