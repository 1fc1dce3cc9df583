"""Constraints on values: each knows its words, and the values on both sides of its limit.

Values of enumerations are named by their member's name (`one_of("MAX", "AVERAGE")`), so that a table can be read
without importing the layers, and with them numpy.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, Protocol

import attrs


class Constraint(Protocol):
    """A condition on one value."""

    @property
    def text(self) -> str:
        """The allowed values, in words."""
        ...

    @property
    def passing(self) -> Sequence[Any]:
        """Values just inside each limit."""
        ...

    @property
    def failing(self) -> Sequence[Any]:
        """Values just outside each limit."""
        ...

    def holds(self, value: Any) -> bool:
        """Return whether a value is allowed."""
        ...


@attrs.frozen
class Between:
    """A number from `low` to `high`, both included; None leaves a side open."""

    low: int | None
    high: int | None

    @property
    def text(self) -> str:
        """The allowed values, in words."""
        if self.low is None:
            return f"at most {self.high}"
        return f"at least {self.low}" if self.high is None else f"{self.low} to {self.high}"

    @property
    def passing(self) -> Sequence[int]:
        """The limits."""
        return [limit for limit in (self.low, self.high) if limit is not None]

    @property
    def failing(self) -> Sequence[int]:
        """One below and one above."""
        return [*([self.low - 1] if self.low is not None else []), *([self.high + 1] if self.high is not None else [])]

    def holds(self, value: Any) -> bool:
        """Return whether a number is within the limits."""
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


@attrs.frozen
class OneOf:
    """One of the listed values; members of enumerations by name."""

    values: Sequence[Any]

    @property
    def text(self) -> str:
        """The allowed values, in words."""
        return ", ".join(map(str, self.values))

    @property
    def passing(self) -> Sequence[Any]:
        """Every listed value."""
        return self.values

    @property
    def failing(self) -> Sequence[Any]:
        """The neighbours of numbers; the other members of an enumeration are not known here."""
        numbers = [value for value in self.values if isinstance(value, int) and not isinstance(value, bool)]
        return sorted({near for number in numbers for near in (number - 1, number + 1)} - set(numbers))

    def holds(self, value: Any) -> bool:
        """Return whether a value is listed."""
        return member_name(value) in self.values


@attrs.frozen
class WholeBetween:
    """A whole number from `low` to `high`, both included; it may be stored as floating point."""

    low: int
    high: int

    @property
    def text(self) -> str:
        """The allowed values, in words."""
        return f"a whole number from {self.low} to {self.high}"

    @property
    def passing(self) -> Sequence[float]:
        """The limits."""
        return [self.low, self.high]

    @property
    def failing(self) -> Sequence[float]:
        """One below, one above, and one between that is not whole."""
        return [self.low - 1, self.low + 0.5, self.high + 1]

    def holds(self, value: Any) -> bool:
        """Return whether a number is whole and within the limits."""
        return bool(self.low <= value <= self.high and value == int(value))


@attrs.frozen
class Outside:
    """A number below `low` or above `high`: what stands between them is refused, both included."""

    low: int
    high: int

    @property
    def text(self) -> str:
        """The allowed values, in words."""
        return f"less than {self.low} or more than {self.high}"

    @property
    def passing(self) -> Sequence[int]:
        """One below and one above."""
        return [self.low - 1, self.high + 1]

    @property
    def failing(self) -> Sequence[int]:
        """The limits."""
        return [self.low, self.high]

    def holds(self, value: Any) -> bool:
        """Return whether a number is outside."""
        return bool(value < self.low or value > self.high)


def between(low: int, high: int) -> Between:
    """Return a number from low to high, both included."""
    return Between(low, high)


def whole_between(low: int, high: int) -> WholeBetween:
    """Return a whole number from low to high, both included."""
    return WholeBetween(low, high)


def outside(low: int, high: int) -> Outside:
    """Return a number below low or above high."""
    return Outside(low, high)


def at_most(high: int) -> Between:
    """Return a number up to high, included."""
    return Between(None, high)


def at_least(low: int) -> Between:
    """Return a number from low, included."""
    return Between(low, None)


def one_of(*values: Any) -> OneOf:
    """One of these; members of enumerations by name."""
    return OneOf(values)


def equals(value: Any) -> OneOf:
    """This value and no other."""
    return OneOf((value,))


def member_name(value: Any) -> Any:
    """Return the name of a member of an enumeration; any other value as it is."""
    return value.name if isinstance(value, enum.Enum) else value
