"""Probes for a second round: layers with values between those that a board took and those that it refused."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dryfit.answers.asked import asked, quiet_log
from dryfit.answers.board.probes import MOST_ACCEPTED, ProbeNetwork
from dryfit.answers.json_data import Count
from dryfit.answers.log_comparison import DLA, layers_by_node, own_layer
from dryfit.answers.placement import placement_of
from dryfit.attrs_classes import frozen
from dryfit.board.kit.probes import FAMILIES, Candidate, candidate_of, network_of
from dryfit.board.learned_rules import OpenLimit, Shape, looks_of, shape_of
from dryfit.builder.assessment import assessment_of
from dryfit.building import design_for_assessment
from dryfit.errors import DryfitError
from dryfit.plugins import registry
from dryfit.short_text import count_text
from dryfit.target.overlays import Overlay

MOST_VALUES = 63
"""Values that are tried of one limit in one round: our choice, since a round costs a trip to the board, and a layer
less than a second there. A limit among up to 64 values is found in one round, among up to 4,096 in two."""
FARTHEST, FAR_VALUES = 4, 12
"""Where no value was refused, so many values up to so many times the last one that was taken are tried. Our choice."""
_TRIED = 8
"""Values with which a family is asked whether a rule looks at it."""
_OPTIONS: Mapping[str, Any] = {"precision": ["fp16"]}


@frozen
class NarrowedLimit:
    """A moved limit, with what another round of probes does about it.

    Attributes:
        rule: id of the rule.
        limit: name of its limit.
        taken: the last value that ran on the device.
        refused: the first value beyond it that was refused; null if none was tried.
        values: number of values that the probes try.
        left: number of values at which the limit can be after the round, at most; null where there is no bound.
        note: why none is tried; "" if values are tried.
    """

    rule: str
    limit: str
    taken: float
    refused: float | None
    values: Count
    left: Count | None
    note: str


@frozen
class Narrowing:
    """A second round of probes.

    Attributes:
        limits: the moved limits.
        networks: the networks, one build each.
        candidates: the layers in them.
    """

    limits: Sequence[NarrowedLimit]
    networks: Sequence[ProbeNetwork]
    candidates: Sequence[Candidate]


@frozen
class _Seen:
    """A candidate as the rules of the board see it.

    Attributes:
        candidate: the candidate.
        violations: rules of the board that it violates, as far as the board is known.
        values: rule to the values that it looks at.
    """

    candidate: Candidate
    violations: frozenset[str]
    values: Mapping[str, Sequence[Any]]

    def number(self, limit: OpenLimit) -> float | None:
        """The value by which a rule judges it; None if it does not tell whether the limit is farther."""
        numbers = [one for one in self.values.get(limit.rule, ()) if isinstance(one, int | float)]
        if not numbers or not self.violations <= {limit.rule}:
            return None
        side = -1.0 if limit.limit == "low" else 1.0
        found = side * max(side * one for one in numbers)
        is_before = limit.refused is None or side * found < side * limit.refused
        return found if side * found > side * limit.taken and is_before else None


def narrowing_probes(overlay: Overlay, limits: Iterable[OpenLimit], platform: str, software: str) -> Narrowing:
    """Choose layers that show where moved limits are.

    A layer is of use if the board, as the overlay has it, would refuse it for the value in question alone. Which
    layers those are is asked of the rules.

    Args:
        overlay: what was learnt of the board.
        limits: its limits that lie between two tried values.
        platform: the board.
        software: its version.
    """
    asking = _Asking(overlay, platform, software)
    found, chosen = [], dict[str, Candidate]()
    for limit in limits:
        seen = asking.between(limit)
        chosen.update((one.name, one) for _, one in seen)
        found.append(_narrowed(limit, [value for value, _ in seen]))
    names = list(chosen.values())
    groups = [names[start : start + MOST_ACCEPTED] for start in range(0, len(names), MOST_ACCEPTED)]
    networks = [
        ProbeNetwork(
            network_of(group),
            f"{count_text(len(group), 'layer')} between tried values in fp16",
            {**_OPTIONS, "fallback": "GPU"},
            len(group),
        )
        for group in groups
    ]
    return Narrowing(found, networks, names)


def _narrowed(limit: OpenLimit, values: Sequence[float]) -> NarrowedLimit:
    left = None
    if limit.refused is not None:
        tried = sorted([limit.taken, *values, limit.refused])
        left = max(math.ceil(after - before) for before, after in itertools.pairwise(tried))
    note = "" if values else "no probe has a value between them that no other rule refuses"
    return NarrowedLimit(limit.rule, limit.limit, limit.taken, limit.refused, len(values), left, note)


class _Asking:
    """Asks the rules of a board about candidates."""

    def __init__(self, overlay: Overlay, platform: str, software: str) -> None:
        self._options = {"platform": platform, "software": software, "overlays": (overlay,), **_OPTIONS}
        self._target = registry.target(DLA)

    def between(self, limit: OpenLimit) -> list[tuple[float, Candidate]]:
        """Return candidates, with their values between the two of a limit: those of the first family that has some."""
        table = self._target.limits
        assert table is not None  # noqa: S101  the DLA has rules
        is_own_value = shape_of(table.rule(limit.rule)) is Shape.RANGE
        for family in FAMILIES:
            numbers = _numbers(family, limit, is_own_value=is_own_value)
            few = numbers[:: max(1, len(numbers) // _TRIED)] if is_own_value else numbers
            if any(one.number(limit) is not None for one in self._seen(family, few)):
                seen = [(one.number(limit), one.candidate) for one in self._seen(family, numbers)]
                by_value = {value: candidate for value, candidate in seen if value is not None}
                return sorted(by_value.items(), key=lambda one: one[0])
        return []

    def _seen(self, family: str, numbers: Sequence[int]) -> Iterator[_Seen]:
        group = [candidate_of(family, number) for number in numbers]
        if not group:
            return
        try:
            with quiet_log():
                subject = asked(network_of(group), None, self._options)
                design = design_for_assessment(subject.network, subject.config)
                assessment = assessment_of(design, subject.config)
        except DryfitError:  # the importer takes no such values
            return
        nodes = layers_by_node(placement_of("probes", assessment, subject.config.settings(subject.network)).layers)
        question = subject.config.questions(self._target, design.specs)
        held = {layer.name: layer for layer in design.network.layers}
        table = self._target.limits
        for one in group:
            own = own_layer(one.name, nodes[one.name]) if one.name in nodes else None
            if own is not None and own.name in held and table is not None:
                looks = looks_of(table, [question(held[own.name])])
                violations = frozenset(rule.rule for layer in nodes[one.name] for rule in layer.violations(DLA))
                yield _Seen(one, violations, {look.rule.id: look.values for look in looks})


def _numbers(family: str, limit: OpenLimit, *, is_own_value: bool) -> list[int]:
    """The numbers of a family with which it is asked, at most `MOST_VALUES`, spread evenly.

    Args:
        family: name of the family.
        limit: the limit.
        is_own_value: whether the rule looks at the number itself; of others, which number has which value is not known.
    """
    largest = FAMILIES[family].largest
    if is_own_value and limit.refused is None:
        ratio = FARTHEST ** (1 / FAR_VALUES)
        far = {math.ceil(limit.taken * ratio**step) for step in range(1, FAR_VALUES + 1)}
        return sorted(one for one in far if limit.taken < one <= largest)
    between = limit.between if is_own_value else range(1, largest + 1)
    numbers = [one for one in between if 1 <= one <= largest]
    count = len(numbers)
    if count <= MOST_VALUES:
        return numbers
    return [numbers[(index + 1) * (count + 1) // (MOST_VALUES + 1) - 1] for index in range(MOST_VALUES)]
