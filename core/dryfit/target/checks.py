"""The vocabulary of limit tables: constraints on values, and checks that apply them to a layer.

A constraint defines its text and the values on both sides of its limit; a check defines what it reads. A rule is
therefore one line, from which its message, its documentation and its boundary tests are derived.

The constraints are those of `dryfit.target.constraints`, so that a table imports its whole vocabulary from here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from dryfit.attrs_classes import frozen
from dryfit.errors import UnknownNameError
from dryfit.target.constraints import (
    Between,
    Constraint,
    OneOf,
    Outside,
    WholeBetween,
    at_least,
    at_most,
    between,
    constraint_limits,
    equals,
    member_name,
    one_of,
    outside,
    whole_between,
)
from dryfit.target.question import Finding, Question

__all__ = [
    "Between",
    "Constraint",
    "FunctionCheck",
    "OneOf",
    "Outside",
    "ParameterCheck",
    "Quantity",
    "Read",
    "WholeBetween",
    "at_least",
    "at_most",
    "between",
    "check",
    "describe",
    "each",
    "either",
    "equals",
    "one_of",
    "outside",
    "parameter",
    "platform_is",
    "quantity",
    "software_is_at_least",
    "whole_between",
]

Read = Callable[[Question], Any]


@frozen
class Quantity:
    """A checked value that is not a plain parameter of the layer.

    Attributes:
        name: name shown to users, such as `batch`.
        read: question -> value, or values if used with `each`.
        show: question -> the found value as shown in messages. None: the value itself.
    """

    name: str
    read: Read = attrs.field(eq=False, repr=False)
    show: Callable[[Question], str] | None = attrs.field(default=None, eq=False, repr=False)

    def __call__(self, question: Question) -> Any:
        """Return the value, or values, for a question."""
        return self.read(question)


def quantity(name: str) -> Callable[[Read], Quantity]:
    """Return a decorator that makes a function of a question a quantity."""
    return lambda read: Quantity(name, read)


@frozen
class ParameterCheck:
    """A constraint on a parameter of the layer, or on each of its values."""

    quantity: Quantity
    constraint: Constraint
    every: bool

    def __call__(self, question: Question) -> Finding | None:
        """Return a finding with the values if one of them is not allowed."""
        value = self.quantity(question)
        values: Iterable[Any] = value if self.every else [value]
        if all(self.constraint.holds(one) for one in values):
            return None
        show = self.quantity.show
        return Finding(describe(value) if show is None else show(question), self.allowed)

    @property
    def parameter(self) -> str:
        """The parameter that it checks."""
        return self.quantity.name

    @property
    def allowed(self) -> str:
        """The allowed values, in words."""
        return f"each {self.constraint.text}" if self.every else self.constraint.text

    @property
    def text(self) -> str:
        """The rule in words."""
        return f"{self.parameter} must be {self._words}"

    @property
    def condition(self) -> str:
        """The check as the condition of another rule, in words."""
        return f"{self.parameter} is {self._words}"

    @property
    def _words(self) -> str:
        several = isinstance(self.constraint, OneOf) and len(self.constraint.values) > 1
        return f"one of {self.constraint.text}" if several else self.constraint.text

    @property
    def boundaries(self) -> tuple[Sequence[Any], Sequence[Any]]:
        """(values just inside, values just outside)."""
        return self.constraint.passing, self.constraint.failing

    @property
    def limits(self) -> Mapping[str, Any]:
        """The limits by name: `low` and `high`, or `values`."""
        return constraint_limits(self.constraint)

    def with_limits(self, limits: Mapping[str, Any]) -> ParameterCheck:
        """Return the check with other limits, by name."""
        constraint: Any = self.constraint
        return attrs.evolve(self, constraint=attrs.evolve(constraint, **limits))


def parameter(what: str | Quantity, constraint: Constraint) -> ParameterCheck:
    """Return a check that a parameter of the layer, or a quantity, meets a constraint."""
    return ParameterCheck(_quantity(what), constraint, every=False)


def each(what: str | Quantity, constraint: Constraint) -> ParameterCheck:
    """Return a check that each value of a multi-valued parameter, such as one per spatial axis, meets a constraint."""
    return ParameterCheck(_quantity(what), constraint, every=True)


@quantity("platform family")
def _family(question: Question) -> str:
    return question.family


def platform_is(*families: str) -> ParameterCheck:
    """Return a check that the platform belongs to one of these families."""
    return parameter(_family, one_of(*families))


@frozen
class FunctionCheck:
    """A check by a function, for conditions that a range cannot express.

    Attributes:
        function: question -> None if the condition holds, otherwise the found value. Its limits are keyword-only
            parameters with defaults.
        parameter: the parameter that it checks.
        words: the rule in words, with `{name}` for each limit.
        limits: the limits by name: those that differ from the function's defaults count, too.
    """

    function: Callable[..., Finding | None] = attrs.field(eq=False, repr=False)
    parameter: str
    words: str
    limits: Mapping[str, Any] = attrs.field(factory=dict)

    def __call__(self, question: Question) -> Finding | None:
        """Evaluate the check for a question."""
        return self.function(question, **self.limits)

    @property
    def text(self) -> str:
        """The rule in words."""
        if not self.limits:
            return self.words
        return self.words.format(**{name: either(value) for name, value in self.limits.items()})

    @property
    def condition(self) -> str:
        """The check as the condition of another rule, in words."""
        return self.text

    def with_limits(self, limits: Mapping[str, Any]) -> FunctionCheck:
        """Return the check with other limits, by name."""
        return attrs.evolve(self, limits={**self.limits, **limits})


def either(value: Any) -> str:
    """Return a limit in words: `64, 96 or 128` for several values."""
    if not isinstance(value, tuple):
        return str(value)
    *others, last = map(str, value)
    return f"{', '.join(others)} or {last}" if others else last


def software_is_at_least(version: str) -> FunctionCheck:
    """Return a check for a minimum software version; a device without versions always passes."""

    def is_new_enough(question: Question, *, first: str) -> Finding | None:
        software, least = question.software, tuple(int(part) for part in first.split("."))
        if not software or (*software, *(0 for _ in least[len(software) :])) >= least:
            return None
        return Finding(".".join(map(str, software)), f"{first} or newer")

    words = "software must be {first} or newer"
    is_new_enough.__doc__ = words.format(first=version)
    return FunctionCheck(is_new_enough, "software version", words, {"first": version})


def check(parameter: str, text: str | None = None) -> Callable[[Callable[..., Finding | None]], FunctionCheck]:
    """Return a decorator that makes a function of a question a check.

    The limits of the check are the function's keyword-only parameters: an overlay can move them by name.

    Args:
        parameter: the parameter that it checks.
        text: the rule in words, with `{name}` for each limit. Default: the docstring of the function.
    """

    def make(function: Callable[..., Finding | None]) -> FunctionCheck:
        words = text or (function.__doc__ or function.__name__.replace("_", " ")).strip().rstrip(".")
        starts_a_sentence = (words[:1].isupper() and words[1:2].islower()) or words[1:2] == " "
        words = words[0].lower() + words[1:] if starts_a_sentence else words
        limits = {
            one.name: one.default
            for one in inspect.signature(function).parameters.values()
            if one.kind is one.KEYWORD_ONLY
        }
        return FunctionCheck(function, parameter, words, limits)

    return make


def describe(value: Any) -> str:
    """Return a value as shown in messages: enumeration members by name, several values in brackets."""
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(describe, value))})"
    return str(member_name(value))


def _quantity(what: str | Quantity) -> Quantity:
    return what if isinstance(what, Quantity) else Quantity(what, lambda question: _read(question, what))


def _read(question: Question, name: str) -> Any:
    """A parameter of the layer.

    Raises:
        UnknownNameError: layers of its kind have no such parameter.
    """
    layer = question.layer
    try:
        return getattr(layer, name)
    except AttributeError:
        known = [field.name for field in layer.parameters()]
        raise UnknownNameError(f"parameter of {layer.kind} layers", name, known) from None
