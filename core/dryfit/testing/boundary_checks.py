"""Checks of both sides of every limit: the rule itself, and the rule on a layer with the value."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from dryfit.errors import DryfitError, NetworkError
from dryfit.network.layer import LAYER_KINDS, Layer
from dryfit.target.boundaries import BoundaryCase, boundary_cases
from dryfit.target.checks import ParameterCheck, Quantity
from dryfit.target.limits import Finding, Question, Rule
from dryfit.target.rule import usual_types
from dryfit.target.target import Target
from dryfit.testing.example_layers import EXAMPLES
from dryfit.testing.limit_checks import random_layer, variants

LayerWith = Callable[[Any], Layer]
"""A value -> a layer in which what the rule looks at has the value."""

_FAMILY = "platform family"
_ATTEMPTS = 60


def cases_of(rule: Rule, target: Target, layer_with: LayerWith | None) -> list[BoundaryCase]:
    """Return the values on both sides of a rule's limits; all members for a list of enumeration members."""
    found = boundary_cases(rule)
    if not found or not isinstance(rule.check, ParameterCheck):
        return found
    constraint = rule.check.constraint
    values = [case.value for case in found]
    others: list[Any] = []
    if rule.parameter == _FAMILY:
        others = list(dict.fromkeys(platform.family for platform in target.platforms))
    elif all(isinstance(value, str) for value in values):
        others = [*_members(rule, target, values[0], layer_with)]
    elif all(isinstance(value, bool) for value in values):
        others = [False, True]
    more = [value for value in others if value not in values]
    return found + [BoundaryCase(rule.id, rule.parameter, one, allowed=constraint.holds(one)) for one in more]


def _members(rule: Rule, target: Target, value: str, layer_with: LayerWith | None) -> Sequence[str]:
    """Names of the enumeration that a listed value is a member of; none where it is no such name."""
    if layer_with is not None:
        layer = layer_with(value)
    else:
        kind = _kind_of(rule)
        if kind not in EXAMPLES or not _is_parameter(rule, kind):
            return []
        layer = random_layer(kind, np.random.default_rng(0))
    looked_at = _values(rule, _question(layer, rule, target, value))
    return [*type(looked_at[0]).__members__] if looked_at and isinstance(looked_at[0], enum.Enum) else []


def decision_problems(rule: Rule, case: BoundaryCase) -> list[str]:
    """Return whether the check misjudges the value, or its message lacks the value or the limit."""
    if not isinstance(rule.check, ParameterCheck):
        return []
    value = [case.value] if rule.check.every else case.value
    check = attrs.evolve(rule.check, quantity=Quantity(rule.parameter, lambda question: value))
    nothing: Any = None
    finding = check(nothing)
    return _finding_problems(rule, case, finding)


def _finding_problems(rule: Rule, case: BoundaryCase, finding: Finding | None) -> list[str]:
    where = f"{rule.id}: {case.parameter} {case.value!r}"
    if (finding is None) != case.allowed:
        return [f"{where} is {'refused' if case.allowed else 'allowed'}, and its text says: {rule.text}"]
    if finding is None:
        return []
    message = rule.violation(finding).message
    values = {"actual": finding.actual, "allowed": finding.allowed}
    lacking = [name for name, value in values.items() if not value or _in_message(value) not in usual_types(message)]
    return [f"{where}: the message must contain the {name} value: {message}" for name in lacking]


def _in_message(value: str) -> str:
    """A value as messages show it: `each` goes before the parameter, and data types have their usual names."""
    return usual_types(value).removeprefix("each ")


class NoLayerError(Exception):
    """The kit cannot create a layer with a rule's value; the message says how the target's author can."""


def layer_problems(target: Target, rule: Rule, case: BoundaryCase, layer_with: LayerWith | None) -> list[str]:
    """Evaluate the rule for a layer with the value, on a platform and version where it applies.

    Args:
        target: target that owns the rule.
        rule: rule with a `ParameterCheck`.
        case: value with the expected decision.
        layer_with: function that creates the layer. None: the value is set on an example of the kind.

    Raises:
        NoLayerError: There is no `layer_with`, and no example can have the value.
    """
    try:
        asked = question_at(target, rule, case, layer_with)
    except NetworkError as error:
        # Such a layer cannot be made at all (a kernel of 0): it never reaches a device.
        return [f"{rule.id}: no layer can have {case.value!r}, which is allowed: {error}"] if case.allowed else []
    if not rule.applies_to(asked):
        return [f"{rule.id} does not speak of the layer that was made for {case.value!r}: {asked.layer!r}"]
    return _finding_problems(rule, case, rule.check(asked))


def question_at(target: Target, rule: Rule, case: BoundaryCase, layer_with: LayerWith | None) -> Question:
    """Return the question with which `layer_problems` evaluates the rule.

    Raises:
        NetworkError: A layer with this value is invalid.
        NoLayerError: There is no `layer_with`, and no example can have the value.
    """
    if layer_with is not None:
        question = _question(layer_with(case.value), rule, target, case.value)
        for tensor in question.outputs:
            question.spec(tensor)
        return question
    rng, kind = np.random.default_rng(0), _kind_of(rule)
    is_parameter = _is_parameter(rule, kind)
    for _ in range(_ATTEMPTS if kind in EXAMPLES else 0):
        layer = random_layer(kind, rng)
        if is_parameter and not _set(layer, rule.parameter, case.value):
            continue
        question = _question(layer, rule, target, case.value)
        values = [_name(one) for one in _values(rule, question)]
        # One value outside refuses the layer; to be allowed, all of them have to be inside.
        occurs = all(one == case.value for one in values) if case.allowed else case.value in values
        if values and occurs and rule.applies_to(question):
            return question
    raise NoLayerError(
        f"the kit has no {kind} layer in which {rule.parameter} is {case.value!r}: "
        f"put a function that makes one into `boundary_layers[{rule.id!r}]`"
    )


def _kind_of(rule: Rule) -> str:
    """A kind that the rule speaks of, of which there are examples where there is such a kind."""
    return min(rule.kinds & set(EXAMPLES) or rule.kinds, default="activation")


def _is_parameter(rule: Rule, kind: str) -> bool:
    return rule.parameter in {parameter.name for parameter in LAYER_KINDS[kind].parameters()}


def _set(layer: Layer, name: str, value: Any) -> bool:
    """Give a parameter a value, each of several where it has several; returns whether it takes it.

    The layer need not be a valid one then (a window larger than its input): only the rule looks at it.
    """
    present = getattr(layer, name)
    several = isinstance(present, tuple)
    one = present[0] if several and present else present
    if isinstance(one, enum.Enum):
        if value not in type(one).__members__:
            return False
        value = type(one)[value]
    try:
        setattr(layer, name, (value,) * len(present) if several else value)
    except DryfitError:
        return False
    return True


def _values(rule: Rule, question: Question) -> Sequence[Any]:
    """What a rule looks at in a layer: one value, or each of several."""
    if not isinstance(rule.check, ParameterCheck):
        return []
    value = rule.check.quantity(question)
    return list(value) if rule.check.every else [value]


def _name(value: Any) -> Any:
    return value.name if isinstance(value, enum.Enum) else value


def _question(layer: Layer, rule: Rule, target: Target, value: Any) -> Question:
    """The layer, asked about on the first platform and newest version where the rule holds, or as the value says."""
    known = list(variants(target))
    fitting = [
        (platform, software)
        for platform, software in known
        if rule.holds_for(platform.family, software) and (rule.parameter != _FAMILY or platform.family == value)
    ]
    platform, software = (fitting or known)[0]
    return Question(
        layer=layer,
        precision=min(rule.precisions, key=lambda one: one.name, default=target.precisions[-1]),
        device=target.device,
        platform=platform.name,
        family=platform.family,
        software=software,
        options={"flags": frozenset(), "engine_capability": "STANDARD", "assume_scales": True},
        cores=platform.cores,
    )
