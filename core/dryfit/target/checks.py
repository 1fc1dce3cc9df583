"""The vocabulary of limit tables: constraints on values, and checks that apply them to a layer.

A constraint knows its words and the values on both sides of its limit; a check knows what it looks at. So a rule is
one line, and its message, its documentation and its boundary tests follow.

Values of enumerations are named by their member's name (`one_of("MAX", "AVERAGE")`), so that a table can be read
without importing the layers, and with them numpy.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import attrs

from dryfit.target.question import Finding, Question

Read = Callable[[Question], Any]


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
        """Whether a value is allowed."""
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
        """Whether a number is within the limits."""
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
        """Whether a value is listed."""
        return _name(value) in self.values


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
        """Whether a number is whole and within the limits."""
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
        """Whether a number is outside."""
        return bool(value < self.low or value > self.high)


def between(low: int, high: int) -> Between:
    """A number from low to high, both included."""
    return Between(low, high)


def whole_between(low: int, high: int) -> WholeBetween:
    """A whole number from low to high, both included."""
    return WholeBetween(low, high)


def outside(low: int, high: int) -> Outside:
    """A number below low or above high."""
    return Outside(low, high)


def at_most(high: int) -> Between:
    """A number up to high, included."""
    return Between(None, high)


def at_least(low: int) -> Between:
    """A number from low, included."""
    return Between(low, None)


def one_of(*values: Any) -> OneOf:
    """One of these; members of enumerations by name."""
    return OneOf(values)


def equals(value: Any) -> OneOf:
    """This value and no other."""
    return OneOf((value,))


@attrs.frozen
class Quantity:
    """Something to look at that is no plain parameter of the layer.

    Attributes:
        name: in the user's words, such as `batch`.
        read: question -> value, or values where it is used with `each`.
        show: question -> what a message says was found; None: the value itself.
    """

    name: str
    read: Read = attrs.field(eq=False, repr=False)
    show: Callable[[Question], str] | None = attrs.field(default=None, eq=False, repr=False)

    def __call__(self, question: Question) -> Any:
        """The value, or values, for a question."""
        return self.read(question)


def quantity(name: str) -> Callable[[Read], Quantity]:
    """Make a function of a question a quantity."""
    return lambda read: Quantity(name, read)


@attrs.frozen
class ParameterCheck:
    """A constraint on a parameter of the layer, or on each of its values."""

    quantity: Quantity
    constraint: Constraint
    every: bool

    def __call__(self, question: Question) -> Finding | None:
        """The values, where one of them is not allowed."""
        value = self.quantity(question)
        values: Iterable[Any] = value if self.every else [value]
        if all(self.constraint.holds(one) for one in values):
            return None
        show = self.quantity.show
        return Finding(describe(value) if show is None else show(question), self.allowed)

    @property
    def parameter(self) -> str:
        """What it looks at."""
        return self.quantity.name

    @property
    def allowed(self) -> str:
        """The allowed values, in words."""
        return f"each {self.constraint.text}" if self.every else self.constraint.text

    @property
    def text(self) -> str:
        """The rule in words."""
        subject = f"each value of {self.parameter}" if self.every else self.parameter
        several = isinstance(self.constraint, OneOf) and len(self.constraint.values) > 1
        return f"{subject} is {'one of ' if several else ''}{self.constraint.text}"

    @property
    def boundaries(self) -> tuple[Sequence[Any], Sequence[Any]]:
        """(values just inside, values just outside)."""
        return self.constraint.passing, self.constraint.failing


def parameter(what: str | Quantity, constraint: Constraint) -> ParameterCheck:
    """A parameter of the layer, or a quantity, obeys a constraint."""
    return ParameterCheck(_quantity(what), constraint, every=False)


def each(what: str | Quantity, constraint: Constraint) -> ParameterCheck:
    """Each value of a parameter that has several, such as one a spatial axis, obeys a constraint."""
    return ParameterCheck(_quantity(what), constraint, every=True)


@quantity("platform family")
def _family(question: Question) -> str:
    return question.family


def platform_is(*families: str) -> ParameterCheck:
    """The platform is of one of these families."""
    return parameter(_family, one_of(*families))


@attrs.frozen
class FunctionCheck:
    """A check that a range cannot say, with its words.

    Attributes:
        function: question -> None when it holds, else what was found.
        parameter: what it looks at.
        text: the rule in words.
    """

    function: Callable[[Question], Finding | None] = attrs.field(eq=False, repr=False)
    parameter: str
    text: str

    def __call__(self, question: Question) -> Finding | None:
        """Look at the layer."""
        return self.function(question)


def software_is_at_least(version: str) -> FunctionCheck:
    """The software is of this version or newer; a device without versions has everything."""
    first = tuple(int(part) for part in version.split("."))

    def is_new_enough(question: Question) -> Finding | None:
        software = question.software
        if not software or (*software, *(0 for _ in first[len(software) :])) >= first:
            return None
        return Finding(".".join(map(str, software)), f"{version} or newer")

    text = f"the software is {version} or newer"
    is_new_enough.__doc__ = text
    return FunctionCheck(is_new_enough, "software version", text)


def check(parameter: str, text: str | None = None) -> Callable[[Callable[[Question], Finding | None]], FunctionCheck]:
    """Make a function of a question a check.

    Args:
        parameter: what it looks at.
        text: the rule in words; the function's docstring where left out.
    """

    def make(function: Callable[[Question], Finding | None]) -> FunctionCheck:
        words = text or (function.__doc__ or function.__name__.replace("_", " ")).strip().rstrip(".")
        starts_a_sentence = (words[:1].isupper() and words[1:2].islower()) or words[1:2] == " "
        return FunctionCheck(function, parameter, words[0].lower() + words[1:] if starts_a_sentence else words)

    return make


def describe(value: Any) -> str:
    """A value as it stands in a message: enumerations by name, several values in brackets."""
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(describe, value))})"
    return str(_name(value))


def _name(value: Any) -> Any:
    return value.name if isinstance(value, enum.Enum) else value


def _quantity(what: str | Quantity) -> Quantity:
    return what if isinstance(what, Quantity) else Quantity(what, lambda question: getattr(question.layer, what))
