"""The magnitudes of one sign, counted in bins whose width is a power of two."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from dryfit.network.layers.histogram import BIN_BITS, BINS, NO_EXPONENT

Counts = np.ndarray[Any, np.dtype[np.int64]]

_EMPTY = np.zeros(BINS, np.int64)
_EMPTY.flags.writeable = False


@attrs.frozen(eq=False)
class HistogramSide:
    """Counts in 2048 bins of width `2^(exponent - 11)`; the last of them that is not empty is in the upper half.

    Attributes:
        exponent: `NO_EXPONENT` where there is no value.
        counts: int64[2048]; not to be written to.
    """

    exponent: int = NO_EXPONENT
    counts: Counts = _EMPTY

    @property
    def is_empty(self) -> bool:
        """Whether no value has this sign."""
        return self.exponent == NO_EXPONENT

    def joined(self, other: HistogramSide) -> HistogramSide:
        """The values of both, in the wider bins of the two."""
        if self.is_empty or other.is_empty:
            return other if self.is_empty else self
        exponent = max(self.exponent, other.exponent)
        return HistogramSide(exponent, self.counts_at(exponent) + other.counts_at(exponent))

    def counts_at(self, exponent: int) -> Counts:
        """The counts for the bins of an exponent that is not smaller: groups of neighbours become one."""
        if self.is_empty or exponent == self.exponent:
            return self.counts
        group = 1 << min(exponent - self.exponent, BIN_BITS)
        folded = np.zeros(BINS, np.int64)
        folded[: BINS // group] = self.counts.reshape(-1, group).sum(axis=1)
        return folded
