"""Both sides of every limit as data, for generated tests and documentation."""

from __future__ import annotations

from typing import Any

from dryfit.attrs_classes import frozen
from dryfit.target.checks import ParameterCheck
from dryfit.target.limits import Rule


@frozen
class BoundaryCase:
    """One value at a limit.

    Attributes:
        rule: id of the rule.
        parameter: the parameter with the value.
        value: the value, or each of several values.
        allowed: whether the rule holds for the value.
    """

    rule: str
    parameter: str
    value: Any
    allowed: bool


def boundary_cases(rule: Rule) -> list[BoundaryCase]:
    """Return the values just inside and just outside each limit of a rule.

    Empty for a rule whose check is a function, for which the author must write cases.
    """
    if not isinstance(rule.check, ParameterCheck):
        return []
    passing, failing = rule.check.boundaries
    return [
        *(BoundaryCase(rule.id, rule.parameter, value, allowed=True) for value in passing),
        *(BoundaryCase(rule.id, rule.parameter, value, allowed=False) for value in failing),
    ]
