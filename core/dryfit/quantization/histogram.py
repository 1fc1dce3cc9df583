"""The histogram of magnitudes that is the same for every order, batch and split of the samples.

The width of a bin is always a power of two, set by the largest magnitude seen so far. When that grows, whole groups of
neighbouring bins become one. Division by a power of two is exact, and so is halving a bin number, so the state depends
on the values alone: it is what one histogram of all values at once would be.

Positive and negative values have bins of their own. So what a ReLU gives follows exactly from what it takes, and so
does what a concatenation joins: such tensors need not be looked at.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.errors import CalibrationError
from dryfit.network.layers.ranking import (
    BIN_BITS,
    BINS,
    HEAD_WORDS,
    INFINITE,
    LEAST_EXPONENT,
    MAXIMUM,
    MINIMUM,
    NAN,
    NEGATIVE_EXPONENT,
    NO_EXPONENT,
    POSITIVE_EXPONENT,
    VALUES,
    ZEROS,
)
from dryfit.network.tensor import Array
from dryfit.quantization.collector import Collector
from dryfit.reference.reduction import exponent_of, histogram_record

Counts = np.ndarray[Any, np.dtype[np.int64]]

_EMPTY = np.zeros(BINS, np.int64)
_EMPTY.flags.writeable = False


@frozen(eq=False)
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


__all__ = ["BINS", "LEAST_EXPONENT", "SHOWN_BINS", "Counts", "Histogram"]

SHOWN_BINS = 64
"""Bins of a histogram for people: each is 32 of those that solvers read."""

_HEAD = struct.Struct("<hhqdd")
_SIDE_BYTES = 8 * BINS


class Histogram(Collector):
    """Counts of magnitudes in 2048 equal bins, with the exact least and largest value.

    A value x lies in bin `floor(|x| / bin_width)`, where `bin_width = 2^(exponent - 11)` and `2^exponent` is the least
    power of two above the largest magnitude. Of the 2048 bins 1025 to 2048 are in use. 16 KiB for values of one sign,
    32 KiB for those of both, whatever is counted.

    Attributes:
        positive, negative: the values above and below zero, each in bins of their own width.
        minimum, maximum: of all values, with their signs; infinity and minus infinity as long as there is none.
        zeros: how many values are zero.

    Example:
        >>> seen = Histogram("relu1")
        >>> seen.update(np.float32([0.0, 0.5, 1.5]), "first image")
        >>> seen.bin_width, seen.counts.nonzero()[0].tolist()
        (0.0009765625, [0, 512, 1536])
    """

    state_name = "histogram 2^11 of each sign"

    def __init__(self, tensor: str = "", *, skips_nonfinite: bool = False) -> None:
        super().__init__(tensor, skips_nonfinite=skips_nonfinite)
        self.positive, self.negative = HistogramSide(), HistogramSide()
        self.minimum, self.maximum = math.inf, -math.inf
        self.zeros = 0

    # What solvers read --------------------------------------------------------------------------------------------

    @property
    def exponent(self) -> int | None:
        """The larger exponent of the two signs; None as long as nothing but zeros was seen."""
        exponent = max(self.positive.exponent, self.negative.exponent)
        return None if exponent == NO_EXPONENT else exponent

    @property
    def counts(self) -> Counts:
        """How many magnitudes lie in each bin, whatever their sign: int64[2048], a new array; zeros are in bin 0."""
        exponent = max(self.positive.exponent, self.negative.exponent)
        counts = self.positive.counts_at(exponent) + self.negative.counts_at(exponent)
        counts[0] += self.zeros
        return counts

    def shown_counts(self) -> list[int]:
        """How many magnitudes other than zero lie in each of 64 bins, which are 32 times as wide as the others."""
        counts = self.counts
        counts[0] -= self.zeros
        found: list[int] = counts.reshape(SHOWN_BINS, -1).sum(axis=1).tolist()
        return found

    @property
    def count(self) -> int:
        """How many values were seen."""
        return self.zeros + int(self.positive.counts.sum()) + int(self.negative.counts.sum())

    @property
    def magnitude(self) -> float:
        """The largest magnitude, exactly; 0.0 where there is none."""
        return max(-self.minimum, self.maximum, 0.0)

    @property
    def bin_width(self) -> float:
        """The width of a bin, a power of two; 0.0 as long as nothing but zeros was seen."""
        return 0.0 if self.exponent is None else math.ldexp(1.0, self.exponent - BIN_BITS)

    # Gathering ----------------------------------------------------------------------------------------------------

    def add(self, values: Array, sample: str) -> None:  # noqa: ARG002  which sample it was does not matter
        """Count the values."""
        self._add_finite(histogram_record(values))

    def update_record(self, record: Counts, sample: str) -> None:
        """Take in a sample of which a histogram layer has made a record; equals `update` with the sample's values.

        Args:
            record: int64[4104], as `HistogramLayer` describes it.
            sample: what errors call the sample.

        Raises:
            CalibrationError: values are not finite, and are not to be skipped.
        """
        nan, infinite = int(record[NAN]), int(record[INFINITE])
        if nan + infinite:
            self.skip_nonfinite(nan, infinite, int(record[VALUES]), sample)
        self._add_finite(record)

    def _add_finite(self, record: Counts) -> None:
        minimum, maximum = record[[MINIMUM, MAXIMUM]].view(np.float64)
        self.minimum, self.maximum = min(self.minimum, float(minimum)), max(self.maximum, float(maximum))
        self.zeros += int(record[ZEROS])
        positive, negative = record[HEAD_WORDS:].reshape(2, BINS)
        self.positive = self.positive.joined(_side(record[POSITIVE_EXPONENT], positive))
        self.negative = self.negative.joined(_side(record[NEGATIVE_EXPONENT], negative))

    def absorb(self, other: Histogram) -> None:
        """Add the counts of another histogram, whose bins may be of another width."""
        self.minimum, self.maximum = min(self.minimum, other.minimum), max(self.maximum, other.maximum)
        self.zeros += other.zeros
        self.positive = self.positive.joined(other.positive)
        self.negative = self.negative.joined(other.negative)

    def rectified(self) -> Self:
        """The histogram of `max(x, 0)` of the values, without having seen them."""
        found = type(self)(self.tensor, skips_nonfinite=self.skips_nonfinite)
        found.positive = self.positive
        found.zeros = self.zeros + int(self.negative.counts.sum())
        if self.count:
            found.minimum, found.maximum = max(self.minimum, 0.0), max(self.maximum, 0.0)
        return found

    def become_union(self, others: Iterable[Histogram]) -> None:
        """Take the state of a histogram of all values of these, whatever was seen before."""
        self.positive, self.negative = HistogramSide(), HistogramSide()
        self.minimum, self.maximum, self.zeros = math.inf, -math.inf, 0
        for other in others:
            self.absorb(other)

    # Bytes --------------------------------------------------------------------------------------------------------

    def payload(self) -> bytes:
        """Both exponents, zeros, least and largest value; then the counts of each sign that values have. Little-endian.

        28 bytes, and 16 KiB for each sign.
        """
        sides = (self.positive, self.negative)
        head = _HEAD.pack(*(side.exponent for side in sides), self.zeros, self.minimum, self.maximum)
        return head + b"".join(side.counts.astype("<i8").tobytes() for side in sides if not side.is_empty)

    def restore(self, payload: bytes) -> None:
        """Take over a state that `payload` gave.

        Raises:
            CalibrationError: these values cannot have been counted together.
        """
        where = f"state of tensor {self.tensor!r}"
        if len(payload) < _HEAD.size:
            raise _wrong_size(where, payload, _HEAD.size)
        *exponents, self.zeros, self.minimum, self.maximum = _HEAD.unpack_from(payload)
        size = _HEAD.size + _SIDE_BYTES * sum(exponent != NO_EXPONENT for exponent in exponents)
        if len(payload) != size:
            raise _wrong_size(where, payload, size)
        sides, offset = [], _HEAD.size
        for exponent in exponents:
            if exponent == NO_EXPONENT:
                sides.append(HistogramSide())
                continue
            sides.append(HistogramSide(exponent, np.frombuffer(payload, "<i8", BINS, offset).astype(np.int64)))
            offset += _SIDE_BYTES
        self.positive, self.negative = sides
        problem = self._contradiction()
        if problem:
            raise CalibrationError(
                "The histogram is inconsistent", where=where, found=problem, remedy="Collect it again"
            )

    def _contradiction(self) -> str:
        """Why no values can have led to this state; "" where some can."""
        least = min(self.zeros, int(self.positive.counts.min()), int(self.negative.counts.min()))
        if least < 0:
            return f"a count of {least}"
        sides = (self.positive, self.negative)
        if float(self.zeros) + sum(side.counts.sum(dtype=np.float64) for side in sides) >= 2.0**63:
            return "more values than can be counted"
        if not self.count:
            fresh = (self.exponent, self.minimum, self.maximum) == (None, math.inf, -math.inf)
            return "" if fresh else "facts about values, and no value"
        if not (math.isfinite(self.minimum) and math.isfinite(self.maximum) and self.minimum <= self.maximum):
            return f"values from {self.minimum} to {self.maximum}"
        if self.zeros and not self.minimum <= 0.0 <= self.maximum:
            return f"{self.zeros} zeros among values from {self.minimum} to {self.maximum}"
        positive = _problem_of("positive", self.positive, max(self.maximum, 0.0))
        return positive or _problem_of("negative", self.negative, max(-self.minimum, 0.0))


def _side(exponent: int, counts: Counts) -> HistogramSide:
    return HistogramSide() if exponent == NO_EXPONENT else HistogramSide(int(exponent), counts.copy())


def _problem_of(sign: str, side: HistogramSide, magnitude: float) -> str:
    """Why the values of a sign cannot have this largest magnitude; "" where they can."""
    if side.exponent != exponent_of(magnitude):
        found = "none" if side.is_empty else side.exponent
        return f"the exponent {found} for {sign} values up to {magnitude}"
    if side.is_empty:
        return ""
    last = int(math.ldexp(magnitude, BIN_BITS - side.exponent))
    used = side.counts.nonzero()[0]
    if not used.size or used[-1] != last:
        return f"the largest {sign} magnitude {magnitude} elsewhere than in the last bin that has values"
    return ""


def _wrong_size(where: str, payload: bytes, allowed: int) -> CalibrationError:
    return CalibrationError(
        "The histogram has the wrong size",
        where=where,
        found=f"{len(payload)} bytes",
        allowed=f"{allowed}",
        remedy="Collect it again",
    )
