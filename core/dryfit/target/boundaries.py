"""Both sides of every limit, as data: what generated tests and documents look at."""

from __future__ import annotations

from typing import Any

import attrs

from dryfit.target.checks import ParameterCheck
from dryfit.target.limits import Rule


@attrs.frozen
class BoundaryCase:
    """One value at a limit.

    Attributes:
        rule: the rule's id.
        parameter: what has the value.
        value: the value, or each of several.
        allowed: whether the rule holds for it.
    """

    rule: str
    parameter: str
    value: Any
    allowed: bool


def boundary_cases(rule: Rule) -> list[BoundaryCase]:
    """Return the values just inside and just outside each limit of a rule.

    Empty for a rule whose check is a function: its author writes its cases.
    """
    if not isinstance(rule.check, ParameterCheck):
        return []
    passing, failing = rule.check.boundaries
    return [
        *(BoundaryCase(rule.id, rule.parameter, value, allowed=True) for value in passing),
        *(BoundaryCase(rule.id, rule.parameter, value, allowed=False) for value in failing),
    ]
