"""Differences between tensors, summed over any number of samples."""

from __future__ import annotations

import attrs
import numpy as np

from dryfit.answers.comparison.tensor_difference import Difference, ElementDifference
from dryfit.attrs_classes import define
from dryfit.target.kernels import Array


@define(eq=False)
class DifferenceSums:
    """Accumulates the differences of one tensor.

    Attributes:
        tolerance: largest difference that counts as equal, in the tensor's floating-point values.
        largest_finite: largest finite number of a type whose overflow is counted; None for other types.
    """

    tolerance: float = 0.0
    largest_finite: float | None = None
    _elements: int = 0
    _differing: int = 0
    _not_finite: int = 0
    _signal: float = 0.0
    _error: float = 0.0
    _own: float | None = 0.0
    _inherited: float | None = 0.0
    _first: ElementDifference | None = None
    _largest: ElementDifference | None = None
    _largest_error: float = 0.0
    _not_finite_differing: int = 0
    _own_not_finite: int = 0
    _inherited_not_finite: int = 0
    _overflowed: int = 0
    _overflowed_to: float = 0.0

    def add(
        self, sample: str, values: Array, others: Array, fed_others: Array | None, *, is_fed_finite: bool = True
    ) -> None:
        """Add the tensor of one sample.

        Args:
            sample: name of the sample.
            values: values to compare.
            others: reference values in the same shape.
            fed_others: result of the layer on the other side's inputs; None if these are unknown.
            is_fed_finite: whether these inputs are finite in the types that the layer reads.
        """
        x, y = (one.astype(np.float64) for one in (values, others))
        with np.errstate(invalid="ignore", over="ignore"):
            error = x - y
            same = _same(x, y)
            fed = None if fed_others is None else fed_others.astype(np.float64)
            own = None if fed is None else fed - y
            inherited = None if own is None else error - own
            resulting = None if fed is None else x - fed
        magnitudes = np.where(same, 0.0, np.abs(error))
        differs = ~same & ~(magnitudes <= self.tolerance)
        is_finite = np.isfinite(error) if own is None else np.isfinite(error) & np.isfinite(own)
        self._elements += x.size
        self._differing += int(np.count_nonzero(differs))
        self._not_finite += x.size - int(np.count_nonzero(is_finite))
        self._not_finite_differing += _count_unlike(x, y, error)
        if fed is not None and own is not None and resulting is not None:
            self._own_not_finite += _count_unlike(fed, y, own)
            self._inherited_not_finite += _count_unlike(x, fed, resulting)
        if self.largest_finite is not None:
            self._add_overflow(x if fed is None else fed, y, self.largest_finite, is_fed_finite)
        self._signal += _power(y, is_finite)
        self._error += _power(error, is_finite)
        self._own = None if self._own is None or own is None else self._own + _power(own, is_finite)
        known = None if self._inherited is None or inherited is None else _power(inherited, is_finite)
        self._inherited = None if known is None or self._inherited is None else self._inherited + known
        if not differs.any():
            return
        if self._first is None:
            self._first = _element(sample, x, y, int(np.argmax(differs)))
        # What is non-finite values differs more than all that is.
        magnitudes = np.where(np.isnan(magnitudes), np.inf, magnitudes)
        place = int(np.argmax(magnitudes))
        if magnitudes.reshape(-1)[place] > self._largest_error:
            self._largest_error = float(magnitudes.reshape(-1)[place])
            self._largest = _element(sample, x, y, place)

    def _add_overflow(self, made: Array, y: Array, largest: float, is_fed_finite: bool) -> None:
        is_beyond = np.abs(y) > largest
        at_end = is_beyond & (np.abs(made) >= largest)
        # Of what an input has lost before, the layer is not the cause.
        lost = np.isfinite(y) & (~np.isfinite(made) & (is_beyond | is_fed_finite) | at_end)
        self._overflowed += int(np.count_nonzero(lost))
        if lost.any():
            self._overflowed_to = max(self._overflowed_to, float(np.abs(y[lost]).max()))

    def result(self) -> Difference:
        """Return the differences over all samples so far."""
        return Difference(**{field.name: getattr(self, f"_{field.name}") for field in attrs.fields(Difference)})


def _same(x: Array, y: Array) -> Array:
    """Return which elements are equal, with NaN equal to NaN."""
    return np.asarray((x == y) | (np.isnan(x) & np.isnan(y)))


def _count_unlike(x: Array, y: Array, error: Array) -> int:
    """Return the number of elements that differ in a non-finite value."""
    return int(np.count_nonzero(~np.isfinite(error) & ~_same(x, y)))


def _power(values: Array, chosen: Array) -> float:
    return float(np.sum(np.square(values[chosen])))


def _element(sample: str, x: Array, y: Array, place: int) -> ElementDifference:
    index = tuple(int(one) for one in np.unravel_index(place, x.shape))
    return ElementDifference(sample, index, float(x.reshape(-1)[place]), float(y.reshape(-1)[place]))
