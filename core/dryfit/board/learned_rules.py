"""Which rules of a device a board does not have, or sets elsewhere, as its verdicts on layers show.

A layer that the board takes satisfies every rule of the board. A layer that it refuses violates at least one. From the
first follows for certain which documented rules are off, or which limits are wider. From the second follows a narrower
limit where one rule is left that can be the reason: its value is past all that the board was seen to take. Where
several are left, none is named.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from dryfit.attrs_classes import define, frozen
from dryfit.short_text import count_text
from dryfit.target.checks import FunctionCheck, ParameterCheck
from dryfit.target.constraints import Between, OneOf, Outside, WholeBetween, member_name
from dryfit.target.limits import LimitTable
from dryfit.target.overlays import Confirmation, LimitValue, RuleChange
from dryfit.target.question import Question
from dryfit.target.rule import LimitRule

LARGEST_LIMIT = 1 << 24
"""Up to which the limit that a function check would need is searched."""
FAR = 2
"""A limit is taken as absent where a value of so many times the limit was taken, and none beyond it was refused. Our
choice: probes go as far."""
MANY = 3
"""So many refused layers with one common reason decide for it, though each alone has others. Our choice: each of the
others would have to be one of several changes that happen to meet in these layers."""


@frozen(eq=False)
class SeenLayer:
    """A layer on a board.

    Attributes:
        place: build and name, such as `probes-1/conv3`.
        questions: the layer as the rules see it, with the others that the board judged together with it.
        is_taken: whether the board runs it on the device; it refused it otherwise.
        named: rules that the board's own messages name as the reason.
    """

    place: str
    questions: Sequence[Question]
    is_taken: bool
    named: Sequence[str] = ()


class Shape(enum.Enum):
    """How a rule's limits bound what it looks at."""

    RANGE = "numbers between low and high"
    GAP = "numbers outside of low to high"
    LIST = "listed values"
    BOUND = "one number that a function compares"
    PLAIN = "no limit to move"


@frozen
class Look:
    """What one rule sees of one layer.

    Attributes:
        rule: the rule.
        holds: whether the layer satisfies the documented rule.
        values: the values it looks at; what the limit had to be, of a function; empty for a rule without limits.
    """

    rule: LimitRule
    holds: bool
    values: tuple[Any, ...] = ()


@define
class _Taken:
    """What a board was seen to take, of one rule."""

    values: set[Any] = attrs.field(factory=set)
    layers: int = 0
    against: list[str] = attrs.field(factory=list)
    """Layers that violate the documented rule."""


@frozen
class Undecided:
    """A layer whose verdict no correction explains for certain.

    Attributes:
        layer: build and name.
        candidates: rules that may differ on the board; empty where no rule applies to it.
        is_taken: whether the board ran it on the device, and no overlay can change the rule against it.
    """

    layer: str
    candidates: Sequence[str]
    is_taken: bool = False


@frozen
class OpenLimit:
    """A limit that a board has elsewhere, as far as the values that were tried show where.

    Attributes:
        rule: id of the rule.
        limit: name of its limit.
        taken: the last value that ran on the device.
        refused: the first value beyond it that was refused; null if none was tried.
    """

    rule: str
    limit: str
    taken: float
    refused: float | None

    @property
    def between(self) -> Sequence[int]:
        """The whole values between both, at which the limit may also be; empty if it is known, or has no end."""
        if self.refused is None:
            return ()
        low, high = sorted((self.taken, self.refused))
        return range(math.floor(low) + 1, math.ceil(high))


@frozen
class LearnedRules:
    """What verdicts of a board show of the rules.

    Attributes:
        changes: rule id to what differs.
        confirmed: rule id to the layers that were refused for it alone.
        undecided: layers that are not explained.
        layers: number of layers that were looked at.
        open_limits: moved limits with values that were not tried between one that was taken and one that was refused.
    """

    changes: Mapping[str, RuleChange]
    confirmed: Mapping[str, Confirmation]
    undecided: Sequence[Undecided]
    layers: int
    open_limits: Sequence[OpenLimit] = ()


def shape_of(rule: LimitRule) -> Shape:
    """Return how the limits of a rule bound values."""
    check = rule.check
    if isinstance(check, ParameterCheck):
        constraint = check.constraint
        if isinstance(constraint, Between | WholeBetween):
            return Shape.RANGE
        if isinstance(constraint, Outside):
            return Shape.GAP
        return Shape.LIST if isinstance(constraint, OneOf) else Shape.PLAIN
    if isinstance(check, FunctionCheck) and len(_bounds(rule)) == 1 == len(rule.limits):
        return Shape.BOUND
    return Shape.PLAIN


def _bounds(rule: LimitRule) -> list[str]:
    return [name for name, value in rule.limits.items() if isinstance(value, int) and not isinstance(value, bool)]


def learn_rules(table: LimitTable, layers: Iterable[SeenLayer]) -> LearnedRules:
    """Return what the verdicts of a board show of a device's rules.

    Args:
        table: the documented rules.
        layers: of all builds of one board with one software version.
    """
    all_layers = list(layers)
    # A device that lacks the kind of a layer refuses it for that reason, and no other rule is asked.
    lacking = [one for one in all_layers if any(table.lacks(question.layer.kind) for question in one.questions)]
    seen = [(one, looks_of(table, one.questions)) for one in all_layers if one not in lacking]
    learned = _Learning(table, seen).learned()
    refused = [one for one in lacking if not one.is_taken]
    kind_rule = {table.kind_rules[0].id: Confirmation(len(refused))} if refused and len(refused) == len(lacking) else {}
    taken = [Undecided(one.place, [table.kind_rules[0].id], is_taken=True) for one in lacking if one.is_taken]
    return attrs.evolve(
        learned,
        confirmed={**kind_rule, **learned.confirmed},
        undecided=[*learned.undecided, *taken],
        layers=len(all_layers),
    )


def looks_of(table: LimitTable, questions: Iterable[Question]) -> list[Look]:
    """Return what each decisive rule that applies sees of a layer."""
    return [
        look
        for question in questions
        if not table.lacks(question.layer.kind)
        for rule in table.rules
        if rule.severity == "violation" and (look := _look(rule, question)) is not None
    ]


def _look(rule: LimitRule, question: Question) -> Look | None:
    """What a rule sees; None where it does not apply, or fails."""
    try:
        if not rule.applies_to(question):
            return None
        holds = rule.check(question) is None
        check = rule.check
        if isinstance(check, ParameterCheck) and shape_of(rule) is not Shape.PLAIN:
            found = check.quantity(question)
            return Look(rule, holds, tuple(member_name(one) for one in (found if check.every else [found])))
        if shape_of(rule) is Shape.BOUND:
            return Look(rule, holds, _needed(rule, question))
        return Look(rule, holds)
    except Exception:  # noqa: BLE001  a rule may be a stranger's; nothing is learnt from one that fails
        return None


def _needed(rule: LimitRule, question: Question) -> tuple[int, ...]:
    """The least limit with which a function finds nothing; empty where no limit is enough."""
    [name] = _bounds(rule)

    def holds(limit: int) -> bool:
        return rule.with_limits({name: limit}).check(question) is None

    low, high = 0, 1
    while not holds(high):
        low, high = high, 2 * high
        if high > LARGEST_LIMIT:
            return ()
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return (high,)


class _Learning:
    """Draws the conclusions, first from the layers that the board takes."""

    def __init__(self, table: LimitTable, seen: Sequence[tuple[SeenLayer, Sequence[Look]]]) -> None:
        self._rules = {rule.id: rule for rule in table.rules}
        self._seen = seen
        self._taken: dict[str, _Taken] = {}
        for layer, looks in seen:
            for look in looks if layer.is_taken else ():
                one = self._taken.setdefault(look.rule.id, _Taken())
                one.values.update(look.values)
                one.layers += 1
                if not look.holds:
                    one.against.append(layer.place)
        self._past: dict[str, dict[str, set[Any]]] = {}
        """Rule to side to values that were refused for it."""
        self._refused: dict[str, list[str]] = {}
        """Rule to layers that were refused for it alone."""
        self._narrower: set[str] = set()

    def learned(self) -> LearnedRules:
        undecided = self._explain_refusals()
        wider = {rule_id for rule_id, one in self._taken.items() if one.against}
        changes = {rule_id: self._change(self._rules[rule_id]) for rule_id in sorted(wider | self._narrower)}
        confirmed = {
            rule_id: Confirmation(len(layers))
            for rule_id, layers in sorted(self._refused.items())
            if rule_id not in changes
        }
        limits = [one for rule_id, change in changes.items() for one in self._open_limits(self._rules[rule_id], change)]
        return LearnedRules(changes, confirmed, undecided, len(self._seen), limits)

    # Refused layers ---------------------------------------------------------------------------------------------------

    def _explain_refusals(self) -> list[Undecided]:
        waiting: list[tuple[SeenLayer, list[Look]]] = []
        for layer, looks in self._seen:
            if layer.is_taken:
                continue
            possible = [look for look in looks if self._is_past(look)]
            violated = [look for look in possible if not look.holds]
            if violated:
                self._note(layer, violated)
            else:
                waiting.append((layer, [look for look in possible if shape_of(look.rule) is not Shape.PLAIN]))
        while True:
            # What one layer decides may explain others, and leaves fewer reasons for the rest.
            waiting = [one for one in waiting if not any(map(self._is_refused_value, one[1]))]
            decided = next((one for one in waiting if len(self._reasons(*one)) == 1), None)
            reason = self._reason_of_many(waiting) if decided is None else next(iter(self._reasons(*decided)))
            if reason is None:
                return [Undecided(layer.place, sorted({one.rule.id for one in looks})) for layer, looks in waiting]
            self._narrower.add(reason)
            for layer, looks in waiting if decided is None else [decided]:
                self._note(layer, [look for look in looks if look.rule.id == reason])

    def _reason_of_many(self, waiting: Sequence[tuple[SeenLayer, Sequence[Look]]]) -> str | None:
        """The one rule that can be why all layers that share reasons were refused; None where there is no such rule."""
        left = [(layer, self._reasons(layer, looks)) for layer, looks in waiting if looks]
        while left:
            group, rules = [left.pop(0)], set[str]()
            while len(rules) != len(rules := set[str]().union(*(reasons for _, reasons in group))):
                group += [one for one in left if one[1] & rules]
                left = [one for one in left if not one[1] & rules]
            common = set[str].intersection(*(reasons for _, reasons in group))
            if len(group) >= MANY and len(common) == 1:
                return common.pop()
        return None

    def _reasons(self, layer: SeenLayer, looks: Sequence[Look]) -> set[str]:
        found = {look.rule.id for look in looks}
        return found & set(layer.named) or found

    def _note(self, layer: SeenLayer, looks: Sequence[Look]) -> None:
        """Keep what a refusal says of the only rule that explains it."""
        rules = {look.rule.id for look in looks}
        reasons = rules & set(layer.named) or rules
        if len(reasons) != 1:
            return
        [rule_id] = reasons
        self._refused.setdefault(rule_id, []).append(layer.place)
        sides = self._past.setdefault(rule_id, {"low": set(), "high": set(), "values": set()})
        for look in looks:
            if look.rule.id == rule_id:
                for side, values in self._past_values(look).items():
                    sides[side].update(values)

    def _is_past(self, look: Look) -> bool:
        """Whether a rule can be why the board refused a layer: it is past all that the board takes."""
        taken = self._taken.get(look.rule.id, _Taken())
        if shape_of(look.rule) is Shape.PLAIN or not look.values:
            return not look.holds and not taken.against
        return any(self._past_values(look).values())

    def _past_values(self, look: Look) -> dict[str, set[Any]]:
        """Values of a refused layer that are past all that the board takes, by the side of the limits."""
        taken = self._taken.get(look.rule.id, _Taken()).values
        values = set(look.values)
        match shape_of(look.rule):
            case Shape.RANGE:
                limits = look.rule.limits
                least = min(taken, default=_middle(limits))
                most = max(taken, default=_middle(limits))
                return {
                    "low": {one for one in values if "low" in limits and _is_whole(one) and one < least},
                    "high": {one for one in values if "high" in limits and one > most},
                    "values": {one for one in values - taken if not _is_whole(one)},
                }
            case Shape.BOUND:
                return {"high": {one for one in values if all(one > other for other in taken)}}
            case Shape.GAP:
                return {"values": values - taken}
            case Shape.LIST:
                return {"values": values - taken}
        return {}

    def _is_refused_value(self, look: Look) -> bool:
        """Whether a narrower limit that is known already explains a refusal."""
        if look.rule.id not in self._narrower:
            return False
        past = self._past[look.rule.id]
        low, high = past["low"], past["high"]
        return (
            any(one in past["values"] for one in look.values)
            or (bool(low) and any(one <= max(low) for one in look.values))
            or (bool(high) and any(one >= min(high) for one in look.values))
        )

    # Changes ----------------------------------------------------------------------------------------------------------

    def _change(self, rule: LimitRule) -> RuleChange:
        taken = self._taken.get(rule.id, _Taken())
        refused = self._refused.get(rule.id, [])
        past = self._past.get(rule.id, {"low": set(), "high": set(), "values": set()})
        layers = len(taken.against) + len(refused)
        limits = _LIMITS[shape_of(rule)](rule, taken.values, past)
        if taken.against and (not limits or _is_absent(rule, taken.values, refused)):
            told = ", ".join(sorted({str(one) for one in taken.values if not _allows(rule, one)})[:4])
            ran = f"{count_text(len(taken.against), 'layer')} against it ran on the device"
            reason = f"{ran}: {told}" if told else ran
            return RuleChange(enabled=False, layers=layers, reason=reason)
        return RuleChange(limits=limits, layers=layers, reason=_reason(rule, limits, taken.values, past))

    def _open_limits(self, rule: LimitRule, change: RuleChange) -> Iterator[OpenLimit]:
        """The new limits next to which there are values that no layer tried."""
        if not change.enabled or shape_of(rule) not in (Shape.RANGE, Shape.BOUND):
            return
        past = self._past.get(rule.id, {"low": set(), "high": set()})
        for name, value in change.limits.items():
            if not isinstance(value, int | float):
                continue
            taken = float(value)
            refused = max(past["low"], default=None) if name == "low" else min(past["high"], default=None)
            found = OpenLimit(rule.id, name, taken, None if refused is None else float(refused))
            if refused is None or found.between:
                yield found


def _is_whole(value: Any) -> bool:
    return not isinstance(value, float) or value == int(value)


def _middle(limits: Mapping[str, Any]) -> float:
    """What divides values at the low limit from those at the high one."""
    if "low" not in limits or "high" not in limits:
        return float("-inf") if "low" not in limits else float("inf")
    return (float(limits["low"]) + float(limits["high"])) / 2


def _allows(rule: LimitRule, value: Any) -> bool:
    check = rule.check
    if isinstance(check, ParameterCheck):
        return check.constraint.holds(value)
    return shape_of(rule) is Shape.BOUND and value <= next(iter(rule.limits.values()))


def _is_absent(rule: LimitRule, taken: set[Any], refused: Sequence[str]) -> bool:
    """Whether a board that takes these values, and refuses none for the rule, is taken to have no such limit."""
    if refused:
        return False
    limits, shape = rule.limits, shape_of(rule)
    if shape in (Shape.RANGE, Shape.BOUND):
        high = limits.get("high", next(iter(limits.values())) if shape is Shape.BOUND else None)
        far_high = high is not None and max(taken) >= FAR * high and max(taken) > high + 1
        far_low = "low" in limits and min(taken) < limits["low"] and high is None
        return bool(far_high or far_low)
    if shape is Shape.LIST:
        return any(isinstance(one, bool) for one in limits["values"])
    return shape is Shape.GAP


def _range_limits(rule: LimitRule, taken: set[Any], past: Mapping[str, set[Any]]) -> dict[str, LimitValue]:
    limits = rule.limits
    found: dict[str, LimitValue] = {}
    if "high" in limits:
        beyond = [one for one in taken if one > limits["high"]]
        if beyond:
            found["high"] = _number(max(beyond))
        elif past["high"] and min(past["high"]) <= limits["high"]:
            found["high"] = _number(max(taken, default=min(past["high"]) - 1))
    if "low" in limits:
        below = [one for one in taken if one < limits["low"]]
        if below:
            found["low"] = _number(min(below))
        elif past["low"] and max(past["low"]) >= limits["low"]:
            found["low"] = _number(min(taken, default=max(past["low"]) + 1))
    return found


def _bound_limits(rule: LimitRule, taken: set[Any], past: Mapping[str, set[Any]]) -> dict[str, LimitValue]:
    [(name, limit)] = rule.limits.items()
    beyond = [one for one in taken if one > limit]
    if beyond:
        return {name: _number(max(beyond))}
    if past["high"] and min(past["high"]) <= limit:
        return {name: _number(max(taken, default=min(past["high"]) - 1))}
    return {}


def _list_limits(rule: LimitRule, taken: set[Any], past: Mapping[str, set[Any]]) -> dict[str, LimitValue]:
    declared = tuple(rule.limits["values"])
    lost = [one for one in declared if one in past["values"]]
    added = sorted((one for one in taken if one not in declared), key=str)
    kept = [one for one in declared if one not in lost]
    return {"values": (*kept, *added)} if (lost or added) and (kept or added) else {}


def _gap_limits(rule: LimitRule, taken: set[Any], past: Mapping[str, set[Any]]) -> dict[str, LimitValue]:
    low, high = rule.limits["low"], rule.limits["high"]
    inside = sorted(one for one in taken if low <= one <= high)
    outside = sorted(one for one in past["values"] if not low <= one <= high)
    found: dict[str, LimitValue] = {}
    refused = sorted(one for one in past["values"] if low <= one <= high)
    if inside and refused:
        if max(inside) < min(refused):
            found["low"] = max(inside) + 1
        elif min(inside) > max(refused):
            found["high"] = min(inside) - 1
    if outside and min(outside) < low:
        found["low"] = min(outside)
    if outside and max(outside) > high:
        found["high"] = max(outside)
    return found


def _number(value: Any) -> LimitValue:
    return int(value) if _is_whole(value) else float(value)


_LIMITS: Mapping[Shape, Callable[[LimitRule, set[Any], Mapping[str, set[Any]]], dict[str, LimitValue]]] = {
    Shape.RANGE: _range_limits,
    Shape.BOUND: _bound_limits,
    Shape.LIST: _list_limits,
    Shape.GAP: _gap_limits,
    Shape.PLAIN: lambda rule, taken, past: {},
}


def _reason(rule: LimitRule, limits: Mapping[str, Any], taken: set[Any], past: Mapping[str, set[Any]]) -> str:
    """What was taken and what was refused, next to the new limits."""
    parts: Iterator[str] = iter(())
    if shape_of(rule) in (Shape.RANGE, Shape.BOUND):
        side = "low" if "low" in limits and "high" not in limits else "high"
        at = min(taken, default=None) if side == "low" else max(taken, default=None)
        beyond = max(past["low"], default=None) if side == "low" else min(past["high"], default=None)
        bracket = ((at, "ran on the device"), (beyond, "was refused"))
        parts = (f"{one} {what}" for one, what in bracket if one is not None)
    elif "values" in limits:
        ran = sorted(str(one) for one in taken if not _allows(rule, one))
        refused = sorted(str(one) for one in past["values"] if _allows(rule, one))
        parts = (
            f"{', '.join(words)} {what}" for words, what in ((ran, "ran on the device"), (refused, "refused")) if words
        )
    return ", ".join(parts)
