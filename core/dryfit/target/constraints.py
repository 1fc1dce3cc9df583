"""Constraints on values: each defines its text and the values on both sides of its limit.

Enumeration values are given by member name (`one_of("MAX", "AVERAGE")`), so that a table can be read without importing
the layers, and with them numpy.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import attrs

from dryfit.attrs_classes import frozen


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


@frozen
class Between:
    """A number from `low` to `high`, inclusive; None for no bound."""

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


@frozen
class OneOf:
    """One of the listed values; enumeration members by name."""

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
        """The neighbors of numbers; the other members of an enumeration are not known here."""
        numbers = [value for value in self.values if isinstance(value, int) and not isinstance(value, bool)]
        return sorted({near for number in numbers for near in (number - 1, number + 1)} - set(numbers))

    def holds(self, value: Any) -> bool:
        """Return whether a value is listed."""
        return member_name(value) in self.values


@frozen
class WholeBetween:
    """A whole number from `low` to `high`, inclusive; it may be stored as floating point."""

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
        """One value below, one above, and one in between that is not whole."""
        return [self.low - 1, self.low + 0.5, self.high + 1]

    def holds(self, value: Any) -> bool:
        """Return whether a number is whole and within the limits."""
        return bool(self.low <= value <= self.high and value == int(value))


@frozen
class Outside:
    """A number less than `low` or greater than `high`: values between them, inclusive, are rejected."""

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


def constraint_limits(constraint: Constraint) -> Mapping[str, Any]:
    """Return the limits of a constraint by name, such as `low` and `high`; an open end is none."""
    record: Any = constraint
    if not attrs.has(type(record)):
        return {}
    found = {field.name: getattr(record, field.name) for field in attrs.fields(type(record))}
    return {name: value for name, value in found.items() if value is not None}


def between(low: int, high: int) -> Between:
    """Return the constraint: a number from low to high, inclusive."""
    return Between(low, high)


def whole_between(low: int, high: int) -> WholeBetween:
    """Return the constraint: a whole number from low to high, inclusive."""
    return WholeBetween(low, high)


def outside(low: int, high: int) -> Outside:
    """Return the constraint: a number less than low or greater than high."""
    return Outside(low, high)


def at_most(high: int) -> Between:
    """Return the constraint: a number of at most high."""
    return Between(None, high)


def at_least(low: int) -> Between:
    """Return the constraint: a number of at least low."""
    return Between(low, None)


def one_of(*values: Any) -> OneOf:
    """Return the constraint: one of these values; enumeration members by name."""
    return OneOf(values)


def equals(value: Any) -> OneOf:
    """Return the constraint: exactly this value."""
    return OneOf((value,))


def member_name(value: Any) -> Any:
    """Return the name of an enumeration member; any other value unchanged."""
    return value.name if isinstance(value, enum.Enum) else value
