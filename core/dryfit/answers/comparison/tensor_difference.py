"""Differences between a tensor's values and those of another arithmetic, summed over any number of samples."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, Literal, cast

from dryfit.answers.json_data import Amount, Count
from dryfit.attrs_classes import frozen
from dryfit.json_names import json_names

JsonNumber = float | Literal["nan", "inf", "-inf"]
"""A number as JSON has it, which has no number that is not finite."""


@frozen
class ElementDifference:
    """An element that differs.

    Attributes:
        sample: name of the sample.
        index: position in the tensor, one number per axis.
        value: value on the compared side.
        other: value on the other side.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = json_names("sample index json_value:value json_other:other")

    sample: str
    index: tuple[int, ...]
    value: float
    other: float

    @property
    def json_value(self) -> JsonNumber:
        """Real value: code times scale."""
        return _in_json(self.value)

    @property
    def json_other(self) -> JsonNumber:
        """Real value on the other side: code times scale."""
        return _in_json(self.other)

    def __str__(self) -> str:
        return f"{list(self.index)}: {self.value:.6g}, there {self.other:.6g}"


@frozen
class Difference:
    """The difference between a tensor and the same tensor in another arithmetic.

    The error is this tensor's value minus the other's. It has two parts: the error that the layer itself adds, which is
    its result on the other side's inputs minus the other side's result; and the inherited error, which is its result on
    its own inputs minus its result on the other side's.

    Attributes:
        elements: number of compared elements.
        differing: number of elements that differ by more than the tolerance.
        not_finite: number of elements excluded from the sums, because a value or an error is not finite.
        not_finite_differing: number of these elements that are not the same on both sides: NaN or infinite on one, or
            infinite with another sign. NaN equals NaN.
        own_not_finite, inherited_not_finite: number of elements that this part of the error turns into NaN or infinity,
            or back into finite values.
        overflowed: number of elements that the layer itself turns into NaN, infinity or an end of its type,
            although the other side has a finite number; FP16 only.
        overflowed_to: largest magnitude of these elements on the other side.
        signal: sum of the squares of the other side's values.
        error, own, inherited: sums of the squares of the errors; the last two are None if the other side does not have
            all inputs of the layer.
        first: first element that differs, in sample order and row by row; None if none differ.
        largest: the element that differs most.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = json_names(
        "elements differing not_finite not_finite_differing own_not_finite inherited_not_finite "
        "signal_root:signal error_root:error own_root:own_error inherited_root:inherited_error sqnr_db "
        "own_sqnr_db inherited_sqnr_db first largest"
    )

    elements: Count
    differing: Count
    not_finite: Count
    signal: float
    error: float
    own: float | None
    inherited: float | None
    first: ElementDifference | None
    largest: ElementDifference | None
    not_finite_differing: Count = 0
    own_not_finite: Count = 0
    inherited_not_finite: Count = 0
    overflowed: Count = 0
    overflowed_to: Amount = 0.0

    @property
    def signal_root(self) -> Amount:
        """Root mean square of the other side's values."""
        return math.sqrt(self.signal / self._finite)

    @property
    def error_root(self) -> Amount:
        """Root mean square of the differences."""
        return math.sqrt(self.error / self._finite)

    @property
    def own_root(self) -> Amount | None:
        """Root mean square of the error that the layer itself adds; null if it is unknown."""
        return None if self.own is None else math.sqrt(self.own / self._finite)

    @property
    def inherited_root(self) -> Amount | None:
        """Root mean square of the inherited error; null as above."""
        return None if self.inherited is None else math.sqrt(self.inherited / self._finite)

    @property
    def _finite(self) -> int:
        return max(1, self.elements - self.not_finite)

    @property
    def sqnr_db(self) -> float | None:
        """Signal-to-error ratio in dB; null if error or signal is 0."""
        return _finite_decibels(self.signal, self.error)

    @property
    def own_sqnr_db(self) -> float | None:
        """Ratio of signal to own error in dB; null as above, or if unknown."""
        return _finite_decibels(self.signal, self.own)

    @property
    def inherited_sqnr_db(self) -> float | None:
        """Ratio of signal to inherited error in dB; null as above."""
        return _finite_decibels(self.signal, self.inherited)

    @property
    def ratio_text(self) -> str:
        """The signal-to-error ratio, and the number of non-finite elements that it excludes."""
        unlike = self.not_finite_differing
        alike = self.not_finite - unlike
        words = []
        if self.not_finite < self.elements or not self.elements:
            words.append(_decibels_text(self.sqnr_db, is_equal=self.error == 0 and not unlike))
        if unlike:
            words.append(f"{unlike} non-finite values differ")
        if alike:
            words.append(f"{alike} non-finite values match")
        return ", ".join(words)

    @property
    def own_text(self) -> str:
        """The ratio of signal to the error that the layer itself adds."""
        return _part_text(self.own, self.own_not_finite, self.own_sqnr_db)

    @property
    def inherited_text(self) -> str:
        """The ratio of signal to the inherited error."""
        return _part_text(self.inherited, self.inherited_not_finite, self.inherited_sqnr_db)

    def is_below(self, least: float) -> bool:
        """Return whether the signal-to-error ratio is below this value in dB."""
        if self.not_finite_differing:
            return True  # no ratio says how far NaN or infinity is from a number
        return self.error > 0 and (self.sqnr_db is None or self.sqnr_db < least)


def decibels(signal: float, noise: float) -> float:
    """Return `10 log10(signal / noise)`; infinite without noise, minus infinite without signal."""
    if noise == 0:
        return math.inf
    return 10 * math.log10(signal / noise) if signal else -math.inf


def _finite_decibels(signal: float, noise: float | None) -> float | None:
    ratio = math.inf if noise is None else decibels(signal, noise)
    return ratio if math.isfinite(ratio) else None


def _in_json(number: float) -> JsonNumber:
    return number if math.isfinite(number) else cast("JsonNumber", str(number))


def _decibels_text(ratio: float | None, *, is_equal: bool) -> str:
    """Format decibels: `equal` without noise, `no signal` without signal."""
    if is_equal:
        return "equal"
    return "no signal" if ratio is None else f"{ratio:.1f}"


def _part_text(error: float | None, not_finite: int, ratio: float | None) -> str:
    if error is None:
        return "-"
    return "not finite" if not_finite else _decibels_text(ratio, is_equal=error == 0)
